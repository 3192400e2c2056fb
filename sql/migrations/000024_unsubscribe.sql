-- Holds the ways to unsubscribe as {url, mailto}, of which one may be null. Null means that the mail has no way to
-- unsubscribe.
alter table outbound_mails add column unsubscribe jsonb;
