-- The service keeps the counts of minutes for only two days. Therefore the statistics of a week or a month use these
-- hourly counts.
create table statistics_hours (
  hour timestamptz primary key,
  mail_in int not null,
  mail_out int not null,
  payments int not null,
  paid_atomic numeric not null,
  webhooks_ok int not null,
  webhooks_failed int not null
);
comment on table statistics_hours is 'The counts of the service per hour, summed from its minutes.';
