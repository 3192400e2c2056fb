-- A replay restarts the retry schedule, but the count of attempts continues. The difference `attempt - attempts_before`
-- is the number of the attempt in the current schedule. The column `error` tells why the service gave up a delivery
-- without an attempt.
alter table webhook_deliveries
  add column attempts_before integer not null default 0,
  add column error text;
create index payments_endpoint on payments (endpoint_id) where state = 'settled';
create index webhook_deliveries_endpoint on webhook_deliveries (endpoint_id, created_at desc, row desc);
