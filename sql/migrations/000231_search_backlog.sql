-- online: messages are written meanwhile, and their trigger adds them.
-- Adds the messages that were stored before the search segments existed. A job then indexes their words.
insert into search_pending (project_id, created_at, message_row, text_bytes)
select project_id, created_at, row, text_bytes from messages on conflict do nothing;
