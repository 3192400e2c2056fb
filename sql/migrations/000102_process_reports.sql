-- The metrics of SMTP listeners and workers, for /metrics. They are worthless after a crash.
create unlogged table process_reports (
  id uuid primary key,
  part text not null,
  reported_at timestamptz(3) not null default clock_timestamp(),
  -- As prom-client writes them: names, help, values with their labels.
  metrics json not null
);
