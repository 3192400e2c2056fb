-- Terminology
--   event    something that happened in a project, told to whoever listens
--   stream   a project's events, numbered from 1 in the order in which they were committed

-- The row is the stream's lock: whoever numbers an event holds it until he commits, so that no reader who has seen one
-- number can meet a smaller one later.
create table event_streams (
  project_id text primary key references projects on delete cascade,
  last_seq bigint not null
);

create table events (
  project_id text not null references projects on delete cascade,
  seq bigint not null,
  type text not null,
  data jsonb not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  primary key (project_id, seq)
);
create index events_age on events (created_at);
