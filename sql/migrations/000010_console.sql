-- Terminology
--   sign-in link   a one-time token that starts a session of the console; only its hash is stored
--   session        an operator's sign-in to the console; only the hash of the browser's secret is stored
--   minute         the statistics of one minute, which are stored once after its end

-- Holds the sign-in links of the console.
create table console_links (
  token_hash bytea primary key check (octet_length(token_hash) = 32),
  created_at timestamptz(3) not null default clock_timestamp(),
  expires_at timestamptz(3) not null,
  used_at timestamptz(3)
);

-- Holds the sessions of the console.
create table console_sessions (
  -- Holds the public identifier of the session, which the audit log shows.
  id text primary key,
  secret_hash bytea not null unique check (octet_length(secret_hash) = 32),
  created_at timestamptz(3) not null default clock_timestamp(),
  last_seen_at timestamptz(3) not null default clock_timestamp(),
  expires_at timestamptz(3) not null
);

-- Holds the name that the owner gave to a platform key.
alter table api_keys add column name text;

-- Holds the counts of the service for each minute.
create table statistics_minutes (
  minute timestamptz primary key,
  mail_in integer not null,
  mail_out integer not null,
  payments integer not null,
  paid_atomic numeric not null,
  webhooks_ok integer not null,
  webhooks_failed integer not null,
  -- Holds the number of waiting and running jobs of each worker pool at the time of the count.
  jobs jsonb not null
);

-- The following BRIN indexes serve the counts of a minute. BRIN is enough, because the rows lie almost in the order of
-- their times. A BRIN index costs a write almost nothing.
create index messages_added_range on messages using brin (added_at) with (pages_per_range = 16, autosummarize = on);
create index payments_settled_range on payments using brin (settled_at) with (pages_per_range = 16, autosummarize = on);
create index webhook_attempts_ended_range on webhook_attempts using brin (ended_at)
  with (pages_per_range = 16, autosummarize = on);
