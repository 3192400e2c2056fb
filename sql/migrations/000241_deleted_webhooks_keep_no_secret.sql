-- A deleted webhook keeps neither its secret nor the path of its URL, because both can be secrets. The row remains for the
-- log of its deliveries.
alter table project_webhooks alter column webhook_key_id drop not null, alter column webhook_wrapped_key drop not null,
  alter column webhook_ciphertext drop not null;
update project_webhooks set webhook_key_id = null, webhook_wrapped_key = null, webhook_ciphertext = null,
  url = substring(url from '^[a-zA-Z]+://[^/?#]+')
where deleted_at is not null;
create index project_webhooks_deleted on project_webhooks (deleted_at) where deleted_at is not null;
-- Events of a payment that ended after the erasure of its project.
delete from events e using projects p where p.id = e.project_id and p.erased_at is not null;
delete from event_streams s using projects p where p.id = s.project_id and p.erased_at is not null;
