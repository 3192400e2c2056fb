-- Holds the last report of each SMTP listener. The route /readyz reads these reports, because the API cannot see the
-- listener's disk.
create table smtp_listeners (
  id uuid primary key,
  reported_at timestamptz(3) not null default clock_timestamp(),
  -- Tells why the listener accepts no mail. Null means that it accepts mail.
  trouble text
);
