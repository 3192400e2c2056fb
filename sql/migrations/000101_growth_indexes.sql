-- online: each statement runs alone, outside a transaction, and may run twice
drop index concurrently if exists credentials_expiry;
create index concurrently credentials_expiry on credentials (project_id, expires_at, row) where expires_at is not null;
-- The index covers only these statuses, because deliveries with these statuses are rare among the delivered ones.
drop index concurrently if exists webhook_deliveries_undelivered;
create index concurrently webhook_deliveries_undelivered on webhook_deliveries (project_id, status, created_at desc, row desc)
  where status <> 'delivered';
