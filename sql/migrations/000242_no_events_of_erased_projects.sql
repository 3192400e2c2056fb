-- Deletes the events of projects whose data is erased. Such an event belongs to a payment that ended after the erasure
-- of its project.
delete from events e using projects p where p.id = e.project_id and p.erased_at is not null;
delete from event_streams s using projects p where p.id = s.project_id and p.erased_at is not null;
