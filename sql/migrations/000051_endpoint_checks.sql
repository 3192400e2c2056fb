-- Holds the time at which a check of the endpoint was queued. Null means that no check is due.
alter table seller_endpoints add column check_queued_at timestamptz(3);
-- Holds the time at which a worker began to request the URL. Null means that no worker is requesting it.
alter table seller_endpoints add column check_started_at timestamptz(3);
-- Holds the time of the last check of the endpoint that a refused challenge caused.
alter table seller_endpoints add column check_provoked_at timestamptz(3);
