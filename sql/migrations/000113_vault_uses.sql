-- Terminology
--   use          one HTTPS request that a worker sends with the secret of a credential filled in
--   reveal       who reads the secret of a credential: `agent` (keys with vault:read) or `owner` (the console)

alter table credentials add column reveal text not null default 'agent' check (reveal in ('agent', 'owner'));

-- Holds the hosts to which a use of this version may send the secret. Null means the host of metadata.uri. If an old
-- version is restored, its hosts are restored too, so that new hosts never get an old secret.
alter table credential_versions add column allowed_hosts text[];

-- Holds the requests with a secret, from their acceptance until ten minutes after their end. No column holds the secret
-- itself.
create table vault_uses (
  id text primary key,
  project_id text not null references projects on delete cascade,
  credential_name text not null,
  -- The state `sending` means that a worker may have sent the request. The service never sends such a request again.
  state text not null default 'queued' check (state in ('queued', 'sending', 'answered', 'failed', 'unknown')),
  -- Tells why the request with the secret has no response. The text contains no address and no text of the remote
  -- server.
  error text,
  method text not null,
  host text not null,
  -- Holds the URL path as the caller gave it, with its placeholders but without the query.
  path text not null,
  status integer,
  -- Holds the row of the audit entry that was written before the service accepted the request.
  audit_row bigint not null,
  -- Names the encrypted content of the row: the request until its end (version 1), and afterwards the response (version
  -- 2).
  content_version integer not null default 1 check (content_version in (1, 2)),
  key_id text,
  wrapped_key bytea,
  ciphertext bytea,
  created_at timestamptz(3) not null default clock_timestamp(),
  ended_at timestamptz(3),
  -- At this time, the service gives up a request that it has not sent, and deletes the stored response.
  expires_at timestamptz(3) not null,
  check ((key_id is null) = (ciphertext is null) and (key_id is null) = (wrapped_key is null))
);
alter table vault_uses alter column ciphertext set storage external;
create index vault_uses_project on vault_uses (project_id);
create index vault_uses_expiry on vault_uses (expires_at);
create index vault_uses_key on vault_uses (key_id) where key_id is not null;
