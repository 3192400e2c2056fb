-- How recipients of a mail unsubscribe: {url, mailto}, either of them null; null where it offers none.
alter table outbound_mails add column unsubscribe jsonb;
