-- A replay starts the schedule anew while attempts go on being counted: `attempt - attempts_before` is the number of the
-- attempt within the current schedule. `error` says why a delivery was given up without an attempt.
alter table webhook_deliveries
  add column attempts_before integer not null default 0,
  add column error text;
create index payments_endpoint on payments (endpoint_id) where state = 'settled';
create index webhook_deliveries_endpoint on webhook_deliveries (endpoint_id, created_at desc, row desc);
