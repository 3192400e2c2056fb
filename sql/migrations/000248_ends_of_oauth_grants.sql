-- online: an index for the housekeeping, which removes the tokens of ended OAuth grants, and later the grants.
create index concurrently if not exists oauth_grants_end on oauth_grants (coalesce(revoked_at, expires_at));
