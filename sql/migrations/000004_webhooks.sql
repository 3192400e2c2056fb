-- A replay restarts the schedule and keeps counting attempts: `attempt - attempts_before` is the number within the
-- current schedule. `error`: why a delivery was given up without an attempt.
alter table webhook_deliveries
  add column attempts_before integer not null default 0,
  add column error text;
create index payments_endpoint on payments (endpoint_id) where state = 'settled';
create index webhook_deliveries_endpoint on webhook_deliveries (endpoint_id, created_at desc, row desc);
