-- online: each statement runs alone, outside a transaction, and may run twice
-- Few messages have a code. Because of this index, a wait for a code reads no other messages.
drop index concurrently if exists messages_coded;
create index concurrently messages_coded on messages (project_id, created_at, row) where codes <> '[]'::jsonb;
