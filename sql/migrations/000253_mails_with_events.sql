-- online: the index finds the unsent mails that change events of a project.
create index concurrently if not exists outbound_mails_own_event on outbound_mails (project_id)
where own_event is not null;
