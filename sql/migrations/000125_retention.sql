-- Terminology
--   retention  the days that the rows of a class are kept; null: the default (shared/retention.ts)
--   erasure    the purge of a deleted project, from its request to the last row

-- The settings RETENTION_*_DAYS. The workers write them at their start, so that every process reads the same.
create table service_retention (
  singleton boolean primary key default true check (singleton),
  mail_days integer,
  raw_mail_days integer,
  deliveries_days integer,
  logs_days integer,
  idempotency_keys_days integer,
  payment_details_days integer
);

-- The retention of projects that differ from the service; null: the service's.
create table project_retention (
  project_id text primary key references projects on delete cascade,
  mail_days integer,
  raw_mail_days integer,
  deliveries_days integer,
  logs_days integer,
  idempotency_keys_days integer,
  payment_details_days integer
);

-- True: the original was removed by age. Without it a sent message would be composed again.
alter table messages add column raw_expired boolean not null default false;
-- When the details of a final payment were removed by age; null: they are there.
alter table payments add column details_removed_at timestamptz(3);
-- When nothing of a deleted project was left; null: not yet.
alter table projects add column erased_at timestamptz(3);
