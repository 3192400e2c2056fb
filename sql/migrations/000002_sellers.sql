-- Terminology
--   endpoint   what a seller charges for: one URL of one project, with its price and, if wanted, its webhook
--   delivery   one event on its way to one webhook URL; `attempt` counts the tries that ended
--   attempt    one HTTP request of a delivery, and what came of it

create table seller_endpoints (
  id text primary key,
  project_id text not null references projects on delete cascade,
  url_pattern text not null,
  -- Host (lower case, default port dropped) and path: what a resource is matched by.
  match_key text not null,
  price_atomic bigint not null check (price_atomic > 0),
  network text not null,
  description text,
  webhook_url text,
  webhook_secret text,
  verification_status text not null default 'pending',
  verification_detail text,
  verification_checked_at timestamptz(3),
  row bigint generated always as identity unique,
  created_at timestamptz(3) not null default clock_timestamp(),
  deleted_at timestamptz(3)
);
create unique index seller_endpoints_resource on seller_endpoints (project_id, match_key) where deleted_at is null;
create index seller_endpoints_listing on seller_endpoints (project_id, created_at desc, row desc);

create table webhook_deliveries (
  id text primary key,
  project_id text not null references projects on delete cascade,
  endpoint_id text references seller_endpoints on delete cascade,
  -- What the event is about, such as a payment's id; null for events about nothing that is stored.
  subject_id text,
  event text not null,
  idempotency_key text not null,
  url text not null,
  -- The exact bytes that every attempt sends.
  body bytea not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'aborted', 'exhausted')),
  attempt integer not null default 0,
  next_attempt_at timestamptz(3),
  row bigint generated always as identity unique,
  created_at timestamptz(3) not null default clock_timestamp()
);
create index webhook_deliveries_listing on webhook_deliveries (project_id, created_at desc, row desc);
create index webhook_deliveries_subject on webhook_deliveries (subject_id);
create index webhook_deliveries_due on webhook_deliveries (next_attempt_at) where status = 'pending';

create table webhook_attempts (
  delivery_id text not null references webhook_deliveries on delete cascade,
  -- Counts over replays too.
  n integer not null,
  started_at timestamptz(3) not null,
  ended_at timestamptz(3) not null,
  status_code integer,
  error text,
  response_prefix text,
  primary key (delivery_id, n)
);
