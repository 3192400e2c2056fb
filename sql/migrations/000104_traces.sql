-- The W3C trace context of the request or mail that began the work; null: nothing is traced (docs/operating.md).
alter table inbound_mails add column traceparent text;
alter table outbound_mails add column traceparent text;
alter table payments add column traceparent text;
alter table webhook_deliveries add column traceparent text;
