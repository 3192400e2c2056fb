-- One-time codes and links that the parser found in a received message (shared/mail/codes/codes.ts, mailLinks.ts). Null: sent,
-- or received by an earlier version.
alter table messages add column codes jsonb, add column links jsonb;

-- A key that reads mail keeps reading all of it.
update api_keys set scopes = scopes || '{mail:codes}'
where revoked_at is null and scopes @> '{mail:read}' and not scopes @> '{mail:codes}';
