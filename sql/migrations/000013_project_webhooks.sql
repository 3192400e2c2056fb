-- Holds the webhooks of projects. The columns for the secret are the same as in seller_endpoints.
create table project_webhooks (
  id text primary key,
  project_id text not null references projects on delete cascade,
  url text not null,
  events text[] not null check (cardinality(events) > 0),
  webhook_key_id text not null,
  webhook_wrapped_key bytea not null,
  webhook_ciphertext bytea not null,
  row bigint generated always as identity unique,
  created_at timestamptz(3) not null default clock_timestamp(),
  deleted_at timestamptz(3)
);
create index project_webhooks_listing on project_webhooks (project_id, created_at desc, row desc) where deleted_at is null;
create index project_webhooks_key on project_webhooks (webhook_key_id);

alter table webhook_deliveries add column webhook_id text references project_webhooks on delete cascade;
create index webhook_deliveries_webhook on webhook_deliveries (webhook_id, created_at desc, row desc);
