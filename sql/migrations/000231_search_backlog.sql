-- online: messages are written meanwhile, and their trigger adds them.
-- Messages that were stored before the segments. A job takes their words.
insert into search_pending (project_id, created_at, message_row, text_bytes)
select project_id, created_at, row, text_bytes from messages on conflict do nothing;
