-- online: each statement runs alone, outside a transaction, and may run twice
-- Messages with invites, for whoever waits for one.
drop index concurrently if exists messages_invited;
create index concurrently messages_invited on messages (project_id, created_at, row) where invites is not null;
