-- What each SMTP listener last reported of itself, for /readyz of processes that do not see its disk.
create table smtp_listeners (
  id uuid primary key,
  reported_at timestamptz(3) not null default clock_timestamp(),
  -- Why it takes no mail; null while it does.
  trouble text
);
