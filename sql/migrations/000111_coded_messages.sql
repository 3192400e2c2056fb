-- online: each statement runs alone, outside a transaction, and may run twice
-- Few messages have a code: a wait for one reads no others.
drop index concurrently if exists messages_coded;
create index concurrently messages_coded on messages (project_id, created_at, row) where codes <> '[]'::jsonb;
