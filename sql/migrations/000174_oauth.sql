-- This migration adds OAuth 2.1 for the MCP endpoint: the clients, the grants of owners, and the tokens.

create table oauth_clients (
  id text primary key,
  name text not null check (length(name) <= 100),
  redirect_uris text[] not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  used_at timestamptz(3)
);
create index oauth_clients_unused on oauth_clients (created_at) where used_at is null;
comment on table oauth_clients is 'OAuth clients that registered themselves (RFC 7591). Those without a grant are deleted after a day.';

create table oauth_requests (
  id text primary key,
  -- Holds the hash of the cookie of the browser that opened the request. Because of this hash, another browser cannot
  -- use a forwarded link.
  browser_hash bytea not null,
  client_id text not null check (length(client_id) <= 500),
  client_name text not null check (length(client_name) <= 100),
  client_host text check (length(client_host) <= 255),
  redirect_uri text not null check (length(redirect_uri) <= 500),
  -- Null means that the client sent no state.
  state text check (length(state) <= 2000),
  challenge text not null,
  scopes text[] not null,
  resource text not null check (length(resource) <= 500),
  expires_at timestamptz(3) not null,
  decided_at timestamptz(3)
);
create index oauth_requests_expiry on oauth_requests (expires_at);
comment on table oauth_requests is 'Requests for consent that wait for an owner, ten minutes at most.';

create table oauth_grants (
  id text primary key,
  project_id text not null references projects (id) on delete cascade,
  client_id text not null check (length(client_id) <= 500),
  client_name text not null check (length(client_name) <= 100),
  -- Holds the host of a client with a metadata document. Null means that the client registered itself.
  client_host text check (length(client_host) <= 255),
  redirect_host text not null check (length(redirect_host) <= 255),
  scopes text[] not null,
  resource text not null check (length(resource) <= 500),
  -- Tells whether the mail of the app waits for the owner's approval.
  holds_mail boolean not null default false,
  -- Names the person who granted the access.
  actor text not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  expires_at timestamptz(3) not null,
  used_at timestamptz(3),
  revoked_at timestamptz(3)
);
create index oauth_grants_listing on oauth_grants (created_at desc, id desc);
create index oauth_grants_project on oauth_grants (project_id);
create index oauth_grants_client on oauth_grants (client_id);
comment on table oauth_grants is 'What an owner allowed an OAuth client: one project, some scopes, until a time.';

create table oauth_codes (
  code_hash bytea primary key,
  grant_id text not null references oauth_grants (id) on delete cascade,
  client_id text not null,
  redirect_uri text not null,
  challenge text not null,
  expires_at timestamptz(3) not null,
  used_at timestamptz(3)
);
create index oauth_codes_grant on oauth_codes (grant_id);
create index oauth_codes_expiry on oauth_codes (expires_at);
comment on table oauth_codes is 'Hashes of authorization codes. A used one stays a day: its second use ends the grant.';

create table oauth_tokens (
  token_hash bytea primary key,
  kind text not null check (kind in ('access', 'refresh')),
  grant_id text not null references oauth_grants (id) on delete cascade,
  scopes text[] not null,
  expires_at timestamptz(3) not null,
  -- Holds the time at which the client exchanged a refresh token for a new one.
  rotated_at timestamptz(3)
);
create index oauth_tokens_grant on oauth_tokens (grant_id);
create index oauth_tokens_expiry on oauth_tokens (expires_at);
comment on table oauth_tokens is 'Hashes of access and refresh tokens.';
