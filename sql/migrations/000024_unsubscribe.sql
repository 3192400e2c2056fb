-- The ways to unsubscribe: {url, mailto}, either of them null; null: none.
alter table outbound_mails add column unsubscribe jsonb;
