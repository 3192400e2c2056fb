-- The last report of each SMTP listener. The API shows it at /readyz, because it cannot see the listener's disk.
create table smtp_listeners (
  id uuid primary key,
  reported_at timestamptz(3) not null default clock_timestamp(),
  -- Why it takes no mail; null while it does.
  trouble text
);
