-- Holds the reports of the doctor (the service's self-check), and the backups whose age the doctor reports.

create table health_reports (
  id text primary key check (id ~ '^hlr_[0-9a-f]{24}$'),
  requested_at timestamptz(3) not null default clock_timestamp(),
  sections jsonb not null default '{}' check (jsonb_typeof(sections) = 'object')
);
comment on table health_reports is 'The last reports of the doctor. `sections` holds the findings of each section that a worker has looked at.';

create table backups (
  finished_at timestamptz(3) primary key default clock_timestamp()
);
comment on table backups is 'When `bun run backup` copied this database.';
