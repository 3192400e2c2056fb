-- online: each statement runs alone, outside a transaction, and may run twice
-- The index lists the messages with invites, for callers that wait for such a message.
drop index concurrently if exists messages_invited;
create index concurrently messages_invited on messages (project_id, created_at, row) where invites is not null;
