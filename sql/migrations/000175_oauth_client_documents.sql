-- Holds the client-id metadata documents of OAuth clients, which workers fetch.

create table oauth_client_documents (
  id text primary key,
  url text not null unique check (length(url) <= 500),
  state text not null check (state in ('wanted', 'ready', 'failed')),
  name text check (length(name) <= 100),
  redirect_uris text[],
  -- Tells why the last fetch of the document failed.
  fault text check (length(fault) <= 300),
  wanted_at timestamptz(3) not null default clock_timestamp(),
  fresh_until timestamptz(3),
  check (state <> 'ready' or (name is not null and redirect_uris is not null and fresh_until is not null))
);
create index oauth_client_documents_age on oauth_client_documents (wanted_at);
comment on table oauth_client_documents is 'What OAuth clients say about themselves at the URL that is their id.';
