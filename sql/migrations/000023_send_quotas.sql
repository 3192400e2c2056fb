-- Counts the recipients to whom a project has sent mail on a UTC day. The check constraint enforces the limit even for
-- two concurrent statements. The second statement then fails as a whole, and the service runs its send intents again
-- one by one.
create table send_quotas (
  project_id text primary key references projects on delete cascade,
  day date not null,
  used integer not null,
  allowed integer not null,
  constraint send_quotas_within check (used <= allowed)
) with (fillfactor = 50);
