-- Terminology
--   sign-in link   a one-time token that starts a session of the console; only its hash is stored
--   session        an operator signed in to the console; only the hash of what the browser holds is stored
--   minute         what happened in one minute, counted once when the minute is over

create table console_links (
  token_hash bytea primary key check (octet_length(token_hash) = 32),
  created_at timestamptz(3) not null default clock_timestamp(),
  expires_at timestamptz(3) not null,
  used_at timestamptz(3)
);

create table console_sessions (
  -- What may be shown of a session: the audit log names it by this.
  id text primary key,
  secret_hash bytea not null unique check (octet_length(secret_hash) = 32),
  created_at timestamptz(3) not null default clock_timestamp(),
  last_seen_at timestamptz(3) not null default clock_timestamp(),
  expires_at timestamptz(3) not null
);

-- What a platform key is for, in its owner's words.
alter table api_keys add column name text;

create table statistics_minutes (
  minute timestamptz primary key,
  mail_in integer not null,
  mail_out integer not null,
  payments integer not null,
  paid_atomic numeric not null,
  webhooks_ok integer not null,
  webhooks_failed integer not null,
  -- Jobs that waited or ran when the minute was counted, by worker pool.
  jobs jsonb not null
);

-- A minute is counted over these. Rows lie in the order of their times, near enough for an index that costs a write nothing.
create index messages_added_range on messages using brin (added_at) with (pages_per_range = 16, autosummarize = on);
create index payments_settled_range on payments using brin (settled_at) with (pages_per_range = 16, autosummarize = on);
create index webhook_attempts_ended_range on webhook_attempts using brin (ended_at)
  with (pages_per_range = 16, autosummarize = on);
