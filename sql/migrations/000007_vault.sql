-- Terminology
--   credential   a named secret of one project; `version` is the number of its current version
--   version      the content stored by one PUT or restore; the last ten of a credential are kept
--   data key     the random key of one version, wrapped by the master key key_id
--   audit entry  actor, action, subject, time and outcome

-- Holds the id of each registered master key with a check value that is derived from the key. The check value reveals a
-- different key with the same id.
create table master_keys (
  id text primary key,
  check_value bytea not null check (octet_length(check_value) = 32),
  registered_at timestamptz(3) not null default clock_timestamp()
);

-- Holds the credentials of all projects, without their contents.
create table credentials (
  row bigint generated always as identity primary key,
  id text not null unique,
  project_id text not null references projects on delete cascade,
  name text not null,
  version integer not null default 0,
  created_at timestamptz(3) not null default clock_timestamp(),
  last_used_at timestamptz(3),
  last_rotated_at timestamptz(3),
  unique (project_id, name)
) with (fillfactor = 80);
create index credentials_listing on credentials (project_id, created_at desc, row desc);

-- Holds the stored versions of credentials.
create table credential_versions (
  credential_row bigint not null references credentials on delete cascade,
  version integer not null check (version > 0),
  type text not null,
  -- The type is json and not jsonb, so that the service returns the text unchanged.
  metadata json not null,
  metadata_bytes integer not null,
  expires_at timestamptz(3),
  has_totp boolean not null,
  -- Holds an id of the table master_keys. The column has no foreign key, because every write would lock the same row of
  -- master_keys. The processes themselves check the id.
  key_id text not null,
  wrapped_key bytea not null,
  ciphertext bytea not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  primary key (credential_row, version)
);
create index credential_versions_key on credential_versions (key_id);
-- PostgreSQL does not compress the ciphertext, because a ciphertext cannot become smaller.
alter table credential_versions alter column ciphertext set storage external;

-- Holds the audit log. The table has no foreign key to projects, because the reading of a secret writes an entry and
-- must not wait for the lock on the project.
create table audit_log (
  row bigint generated always as identity primary key,
  project_id text not null,
  at timestamptz(3) not null default clock_timestamp(),
  action text not null,
  subject text,
  detail text,
  -- Holds the prefix of the acting key, and never the key itself.
  actor text not null,
  request_id text not null,
  outcome text not null
);
create index audit_log_listing on audit_log (project_id, at desc, row desc);
create index audit_log_subject on audit_log (project_id, subject, at desc, row desc) where subject is not null;

-- The column webhook_secret holds plain secrets of older versions until a process with the master keys encrypts them.
alter table seller_endpoints
  add column webhook_key_id text,
  add column webhook_wrapped_key bytea,
  add column webhook_ciphertext bytea,
  add check ((webhook_key_id is null) = (webhook_ciphertext is null)
         and (webhook_key_id is null) = (webhook_wrapped_key is null)
         and (webhook_key_id is null or webhook_secret is null));
create index seller_endpoints_webhook_key on seller_endpoints (webhook_key_id) where webhook_key_id is not null;
create index seller_endpoints_plain_secret on seller_endpoints (row) where webhook_secret is not null;
