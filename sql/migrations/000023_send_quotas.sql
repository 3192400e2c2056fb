-- Recipients a project has written to on a UTC day. The check holds the limit against two concurrent statements: the
-- second one fails as a whole, and its intents run again one by one.
create table send_quotas (
  project_id text primary key references projects on delete cascade,
  day date not null,
  used integer not null,
  allowed integer not null,
  constraint send_quotas_within check (used <= allowed)
) with (fillfactor = 50);
