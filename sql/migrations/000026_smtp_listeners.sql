-- The last report of each SMTP listener. /readyz shows it: the API cannot see the listener's disk.
create table smtp_listeners (
  id uuid primary key,
  reported_at timestamptz(3) not null default clock_timestamp(),
  -- Why the listener accepts no mail; null: it accepts mail.
  trouble text
);
