create table endpoint_trials (
  endpoint_id text primary key references seller_endpoints on delete cascade,
  -- A new trial replaces the previous trial and its id, so that a late job of the previous trial finds no row.
  id text not null unique,
  project_id text not null references projects,
  buy boolean not null,
  state text not null default 'asking' check (state in ('asking', 'asked', 'paying', 'paid', 'failed')),
  -- Holds the HTTP method to which the endpoint responded.
  method text,
  challenge json check (length(challenge::text) <= 40000),
  -- The service stores the payment header before it sends the header, so that a second run of the job sends the same
  -- bytes.
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
