-- Terminology
--   retention  the number of days for which the rows of a class are kept; null means the default (shared/retention.ts)
--   erasure    the purge of a deleted project, from its request to the last row

-- Holds the settings RETENTION_*_DAYS. The workers write them at their start, so that every process reads the same
-- values.
create table service_retention (
  singleton boolean primary key default true check (singleton),
  mail_days integer,
  raw_mail_days integer,
  deliveries_days integer,
  logs_days integer,
  idempotency_keys_days integer,
  payment_details_days integer
);

-- Holds the retention settings of projects that differ from those of the service. Null means that the service's setting
-- applies.
create table project_retention (
  project_id text primary key references projects on delete cascade,
  mail_days integer,
  raw_mail_days integer,
  deliveries_days integer,
  logs_days integer,
  idempotency_keys_days integer,
  payment_details_days integer
);

-- The value true means that the original was removed because of its age. Without this column, the service would compose
-- a sent message again.
alter table messages add column raw_expired boolean not null default false;
-- Holds the time at which the details of a final payment were removed because of their age. Null means that the details
-- still exist.
alter table payments add column details_removed_at timestamptz(3);
-- Holds the time from which no data of the deleted project was left. Null means that data is still left.
alter table projects add column erased_at timestamptz(3);
