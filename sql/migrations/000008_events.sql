-- Terminology
--   event    a change in a project, for its event streams and webhooks
--   stream   a project's events, numbered from 1 in commit order

-- Holds the last event number of each stream. A writer locks the row until its commit, so that the numbers become
-- visible in their order.
create table event_streams (
  project_id text primary key references projects on delete cascade,
  last_seq bigint not null
);

-- Holds the stored events. The service deletes expired events.
create table events (
  project_id text not null references projects on delete cascade,
  seq bigint not null,
  type text not null,
  data jsonb not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  primary key (project_id, seq)
);
create index events_age on events (created_at);
