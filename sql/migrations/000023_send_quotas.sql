-- Recipients a project has written to on a UTC day. The check holds the limit when two processes accept mail of one
-- project concurrently: the second statement fails as a whole and is run again, one intent at a time.
create table send_quotas (
  project_id text primary key references projects on delete cascade,
  day date not null,
  used integer not null,
  allowed integer not null,
  constraint send_quotas_within check (used <= allowed)
) with (fillfactor = 50);
