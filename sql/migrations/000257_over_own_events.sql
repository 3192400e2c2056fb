-- online: the index finds the own events of a project that the service must check.
create index concurrently if not exists own_events_over on own_events (project_id, over_at);
