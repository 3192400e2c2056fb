-- Holds the metrics of SMTP listeners and workers for /metrics. The table is unlogged, because the metrics are
-- worthless after a crash.
create unlogged table process_reports (
  id uuid primary key,
  part text not null,
  reported_at timestamptz(3) not null default clock_timestamp(),
  -- Holds the metrics in the form that prom-client writes: names, help texts, and values with their labels.
  metrics json not null
);
