-- Holds the change that an invitation mail made to an event of its project. If the mail ends unsent, the service takes
-- the change back, because no recipient has seen it.
alter table outbound_mails add column own_event jsonb;
