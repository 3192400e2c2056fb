-- Migrations run in the order of their names, each once (sql/migrate.ts). Numbers 11 and 15 to 19 are unused. Do not
-- fill a gap: an existing database would run that migration after later ones.
--
-- Terminology
--   project        a tenant: one agent with its inbox, vault and till (the API's `identityId`)
--   raw mail       the bytes of a message, as received or as composed, stored once
--   inbound mail   a raw mail for one inbox, which waits to be parsed and then keeps its final state
--   message        one received or sent message in an inbox
--   outbound mail  the sending of one sent message, with one recipient row per address

-- Holds one row for each project, with the inbox address of the project.
create table projects (
  id text primary key,
  name text not null,
  purpose text not null check (purpose in ('SELLER', 'BUYER')),
  email_address text not null,
  pay_to text,
  payments_enabled boolean not null default false,
  row bigint generated always as identity unique,
  created_at timestamptz(3) not null default clock_timestamp(),
  deleted_at timestamptz(3)
);
-- A deleted project keeps its address, because mail for its owner must never reach a new owner.
create unique index projects_email_address on projects (email_address);
create index projects_address_bytes on projects (email_address collate "C") where deleted_at is null;
create index projects_listing on projects (created_at desc, row desc) where deleted_at is null;

-- Holds the request counters of projects. They are in a separate table, because they change with every request and must
-- not lock the project's row.
create table project_usage (
  project_id text primary key references projects on delete cascade,
  request_count bigint not null default 0,
  last_used_at timestamptz(3)
);

-- Holds the platform keys and the project keys, but only the hash of each key. A project has at most one live key.
create table api_keys (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('project', 'platform')),
  project_id text references projects on delete cascade,
  lookup_prefix text not null,
  key_hash bytea not null check (octet_length(key_hash) = 32),
  scopes text[] not null default '{}',
  created_at timestamptz(3) not null default clock_timestamp(),
  revoked_at timestamptz(3),
  check ((kind = 'project') = (project_id is not null))
);
create unique index api_keys_hash on api_keys (key_hash);
create index api_keys_lookup on api_keys (lookup_prefix) where revoked_at is null;
create unique index api_keys_live_project on api_keys (project_id) where revoked_at is null;

-- Holds the request counters of the current minute. The table is unlogged, because the counters are worthless after a
-- crash and need no write-ahead log.
create unlogged table rate_windows (
  subject text primary key,
  window_start timestamptz not null,
  used integer not null
);

-- Holds the bytes of received and composed mail. Several inboxes can share one row.
create table raw_mails (
  id bigint generated always as identity primary key,
  -- Identifies the spooled mail or the sent message. Because of this unique key, a second storage of the same mail
  -- changes nothing.
  source_key uuid not null unique,
  bytes bytea not null,
  created_at timestamptz(3) not null default clock_timestamp()
);
-- PostgreSQL does not compress the bytes, because mail is mostly encoded text. The compression of tens of megabytes at
-- the insert would only add latency.
alter table raw_mails alter column bytes set storage external;

-- Holds the conversations of one inbox.
create table threads (
  row bigint generated always as identity primary key,
  id text not null unique,
  project_id text not null references projects on delete cascade,
  subject text not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  message_count integer not null default 0
);
create index threads_listing on threads (project_id, updated_at desc, row desc);

-- Holds the received and sent messages of all inboxes.
create table messages (
  row bigint generated always as identity primary key,
  project_id text not null references projects on delete cascade,
  thread_row bigint not null references threads on delete cascade,
  raw_id bigint references raw_mails,
  direction text not null check (direction in ('received', 'sent')),
  message_id text not null,
  message_id_hash bytea not null,
  -- Holds the Message-ID in the header of the mail. Null means that it equals message_id. The two differ if another
  -- message of the inbox already had this Message-ID.
  header_message_id text,
  content_hash bytea,
  in_reply_to text[] not null default '{}',
  reference_ids text[] not null default '{}',
  from_addresses text[] not null default '{}',
  to_addresses text[] not null default '{}',
  cc_addresses text[] not null default '{}',
  bcc_addresses text[] not null default '{}',
  reply_to_addresses text[] not null default '{}',
  subject text not null default '',
  text_body text not null default '',
  html_body text,
  extracted_text text,
  text_bytes integer not null default 0,
  attachments jsonb not null default '[]',
  labels text[] not null default '{}',
  delivery_status text check (delivery_status in ('queued', 'sent', 'deferred', 'bounced', 'failed')),
  delivery_error text,
  -- The column created_at holds the time of arrival or sending. The column added_at holds the time of storing, which is
  -- later for received mail. The column added_at orders the threads.
  created_at timestamptz(3) not null,
  added_at timestamptz(3) not null default clock_timestamp(),
  unique (project_id, message_id_hash)
);
create index messages_listing on messages (project_id, created_at desc, row desc);
create index messages_thread on messages (thread_row, created_at desc, row desc);
create index messages_added on messages (thread_row, added_at desc);
create index messages_labels on messages using gin (labels);
create index messages_raw on messages (raw_id);
create unique index messages_retransmission on messages (project_id, content_hash)
  where direction = 'received';

-- Holds the Message-IDs of each thread: those of its messages, and those of unseen messages to which its messages
-- refer. Therefore a parent that arrives after its reply finds its thread here. The table holds hashes, because a
-- Message-ID can have 998 characters.
create table thread_identifiers (
  project_id text not null references projects on delete cascade,
  message_id_hash bytea not null,
  thread_row bigint not null references threads on delete cascade,
  primary key (project_id, message_id_hash)
);
create index thread_identifiers_thread on thread_identifiers (thread_row);

-- Holds one row for each raw mail and inbox. In the column state, `accepted` means that the mail waits to be parsed.
-- All other states are final.
create table inbound_mails (
  id bigint generated always as identity primary key,
  raw_id bigint not null references raw_mails,
  project_id text not null references projects on delete cascade,
  envelope_from text not null,
  envelope_to text not null,
  remote_ip text,
  helo text,
  received_at timestamptz(3) not null,
  state text not null default 'accepted'
    check (state in ('accepted', 'stored', 'retransmission', 'discarded')),
  message_row bigint references messages on delete set null,
  unique (raw_id, project_id)
);
create index inbound_mails_project on inbound_mails (project_id);
create index inbound_mails_message on inbound_mails (message_row);

-- Describes the sending of one sent message. The column attempt counts the delivery attempts.
create table outbound_mails (
  message_row bigint primary key references messages on delete cascade,
  project_id text not null references projects on delete cascade,
  state text not null default 'queued' check (state in ('queued', 'deferred', 'done')),
  attempt integer not null default 0,
  next_attempt_at timestamptz(3) not null,
  accepted_at timestamptz(3) not null
);
create index outbound_mails_due on outbound_mails (next_attempt_at) where state <> 'done';

-- Holds the outcome for each recipient of an outbound mail.
create table outbound_recipients (
  message_row bigint not null references outbound_mails on delete cascade,
  address text not null,
  state text not null default 'queued' check (state in ('queued', 'sent', 'deferred', 'failed')),
  error text,
  updated_at timestamptz(3) not null default clock_timestamp(),
  primary key (message_row, address)
);

-- Holds one row for each running worker pool. The process of the pool holds the advisory lock (WORKER_LOCK_CLASS, id).
create table worker_pools (
  id integer generated always as identity primary key,
  graphile_pool_id text not null,
  pool_name text not null,
  registered_at timestamptz(3) not null default clock_timestamp(),
  -- Holds the time since which the advisory lock has been free. The service releases the pool's jobs only after a
  -- waiting time, because the pool may reconnect.
  suspect_since timestamptz(3)
);
