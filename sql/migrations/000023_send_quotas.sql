-- How many recipients a project has written to on a day (UTC). The check is what holds the limit where two processes
-- accept mail of one project at the same moment: the second statement fails as a whole, and is run again one by one.
create table send_quotas (
  project_id text primary key references projects on delete cascade,
  day date not null,
  used integer not null,
  allowed integer not null,
  constraint send_quotas_within check (used <= allowed)
) with (fillfactor = 50);
