-- These columns hold the one-time codes and links that the parser found in a received message
-- (shared/mail/codes/codes.ts, mailLinks.ts). Null means that the project sent the message, or that an earlier version
-- received it.
alter table messages add column codes jsonb, add column links jsonb;

-- A key that may already read mail gets the new scope, so that it can still read everything.
update api_keys set scopes = scopes || '{mail:codes}'
where revoked_at is null and scopes @> '{mail:read}' and not scopes @> '{mail:codes}';
