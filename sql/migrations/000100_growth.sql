-- Holds the expiry of a credential's current version. With this column, `expiringWithin` reads only the expiring
-- credentials of a project, even if the project has many credentials.
alter table credentials add column expires_at timestamptz(3);

-- A trigger maintains the expiry, and not the statements that store a version, because a process of the previous
-- release also stores versions during an update.
create function keep_expiry() returns trigger language plpgsql as $$
begin
  update credentials set expires_at = new.expires_at
  where row = new.credential_row and version = new.version and expires_at is distinct from new.expires_at;
  return null;
end $$;
create trigger credential_versions_expiry after insert on credential_versions
  for each row execute function keep_expiry();

update credentials c set expires_at = v.expires_at from credential_versions v
where v.credential_row = c.row and v.version = c.version and v.expires_at is not null;
