-- online: each statement runs alone, outside a transaction, and may run twice
-- The index lets only one payment of a project have a given name (payment identifier). A failed payment frees its name.
drop index concurrently if exists payments_identifier;
create unique index concurrently payments_identifier on payments (project_id, payment_identifier)
  where payment_identifier is not null and state <> 'failed';
drop index concurrently if exists seller_endpoints_discoverable;
create index concurrently seller_endpoints_discoverable on seller_endpoints (row)
  where discoverable and deleted_at is null;
drop index concurrently if exists seller_endpoints_sold;
create index concurrently seller_endpoints_sold on seller_endpoints (match_key)
  where verification_status = 'verified' and deleted_at is null;
