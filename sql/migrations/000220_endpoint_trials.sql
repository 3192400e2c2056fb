create table endpoint_trials (
  endpoint_id text primary key references seller_endpoints on delete cascade,
  -- A new trial replaces the one before; a late job of that one then finds nothing.
  id text not null unique,
  project_id text not null references projects,
  buy boolean not null,
  state text not null default 'asking' check (state in ('asking', 'asked', 'paying', 'paid', 'failed')),
  -- The method that the endpoint answered.
  method text,
  challenge json check (length(challenge::text) <= 40000),
  -- Stored before it is sent: a second run sends the same bytes.
  header_name text,
  header_value text,
  status integer,
  body text check (length(body) <= 16384),
  detail text,
  created_at timestamptz(3) not null default clock_timestamp(),
  ended_at timestamptz(3)
);
create index endpoint_trials_project on endpoint_trials (project_id);
comment on table endpoint_trials is 'The last trial of each endpoint: what a buyer is asked, and on the devnet one purchase.';
