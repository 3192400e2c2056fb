-- Holds the W3C trace context of the request or mail that began the work. Null means that the service does not trace
-- the work (docs/operating.md).
alter table inbound_mails add column traceparent text;
alter table outbound_mails add column traceparent text;
alter table payments add column traceparent text;
alter table webhook_deliveries add column traceparent text;
