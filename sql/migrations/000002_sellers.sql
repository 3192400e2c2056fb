-- Terminology
--   endpoint   a seller's resource: one URL of one project, with its price and an optional webhook
--   delivery   one event for one webhook URL; `attempt` counts its ended attempts
--   attempt    one HTTP request of a delivery, with its result

-- Holds the endpoints of all projects.
create table seller_endpoints (
  id text primary key,
  project_id text not null references projects on delete cascade,
  url_pattern text not null,
  -- Holds the host (in lower case, without the default port) and the path of the URL. Two endpoints with equal keys
  -- sell the same resource.
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

-- Holds the deliveries of events to webhooks. The column next_attempt_at is null after the end of a delivery.
create table webhook_deliveries (
  id text primary key,
  project_id text not null references projects on delete cascade,
  endpoint_id text references seller_endpoints on delete cascade,
  -- Holds the id of the object that the event is about, such as a payment. Null means that this id is not stored.
  subject_id text,
  event text not null,
  idempotency_key text not null,
  url text not null,
  -- Holds the bytes that every attempt of the delivery sends.
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

-- Holds the ended attempts of deliveries.
create table webhook_attempts (
  delivery_id text not null references webhook_deliveries on delete cascade,
  -- Holds the number of the attempt, which continues to grow after a replay of the delivery.
  n integer not null,
  started_at timestamptz(3) not null,
  ended_at timestamptz(3) not null,
  status_code integer,
  error text,
  response_prefix text,
  primary key (delivery_id, n)
);
