-- A deleted webhook keeps neither its secret nor the path of its URL, because both can be secrets. The row remains for the
-- log of its deliveries. The previous release reads these columns only of webhooks that are not deleted.
-- squawk-ignore ban-drop-not-null
alter table project_webhooks alter column webhook_key_id drop not null;
-- squawk-ignore ban-drop-not-null
alter table project_webhooks alter column webhook_wrapped_key drop not null;
-- squawk-ignore ban-drop-not-null
alter table project_webhooks alter column webhook_ciphertext drop not null;
update project_webhooks set webhook_key_id = null, webhook_wrapped_key = null, webhook_ciphertext = null,
  url = substring(url from '^[a-zA-Z]+://[^/?#]+')
where deleted_at is not null;
