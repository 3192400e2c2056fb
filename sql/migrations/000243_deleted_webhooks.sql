-- online: an index for the housekeeping, which removes the rows of deleted webhooks.
create index concurrently if not exists project_webhooks_deleted on project_webhooks (deleted_at) where deleted_at is not null;
