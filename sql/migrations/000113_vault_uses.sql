-- Terminology
--   use          one HTTPS request that a worker sends with the secret of a credential filled in
--   reveal       who reads the secret of a credential: `agent` (keys with vault:read) or `owner` (the console)

alter table credentials add column reveal text not null default 'agent' check (reveal in ('agent', 'owner'));

-- The hosts that a use of this version may reach; null: the host of metadata.uri. A restore takes the hosts of its
-- version along: new hosts never meet an old secret.
alter table credential_versions add column allowed_hosts text[];

-- Requests with a secret, from their acceptance until ten minutes after their end. Nothing here holds the secret.
create table vault_uses (
  id text primary key,
  project_id text not null references projects on delete cascade,
  credential_name text not null,
  -- sending: a worker may have sent it. It is never sent again.
  state text not null default 'queued' check (state in ('queued', 'sending', 'answered', 'failed', 'unknown')),
  -- Why there is no answer. It names no address and holds no word of the server.
  error text,
  method text not null,
  host text not null,
  -- The caller's path. It keeps its placeholders and loses its query.
  path text not null,
  status integer,
  -- The entry that was written before the request was accepted.
  audit_row bigint not null,
  -- The encrypted request; from the end on, the encrypted answer. content_version tells them apart: 1, 2.
  content_version integer not null default 1 check (content_version in (1, 2)),
  key_id text,
  wrapped_key bytea,
  ciphertext bytea,
  created_at timestamptz(3) not null default clock_timestamp(),
  ended_at timestamptz(3),
  -- A request that is not sent by then is given up. An answer is deleted then.
  expires_at timestamptz(3) not null,
  check ((key_id is null) = (ciphertext is null) and (key_id is null) = (wrapped_key is null))
);
alter table vault_uses alter column ciphertext set storage external;
create index vault_uses_project on vault_uses (project_id);
create index vault_uses_expiry on vault_uses (expires_at);
create index vault_uses_key on vault_uses (key_id) where key_id is not null;
