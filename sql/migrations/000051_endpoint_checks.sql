-- When a check of the endpoint was queued; null: none is due.
alter table seller_endpoints add column check_queued_at timestamptz(3);
-- When a worker began to ask the URL; null: none is asking.
alter table seller_endpoints add column check_started_at timestamptz(3);
-- When a refused challenge last had it checked.
alter table seller_endpoints add column check_provoked_at timestamptz(3);
