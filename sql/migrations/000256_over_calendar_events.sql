-- online: the index finds the events of a project that are over, and the coming events whose message is deleted.
create index concurrently if not exists calendar_events_over on calendar_events (project_id, over_at)
where message_row is null;
