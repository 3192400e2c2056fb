-- online: each statement runs alone, outside a transaction, and may run twice
-- These indexes find the transfers that the service must send, the purchases that have not ended, and the refunds of a
-- payment.
drop index concurrently if exists purchases_to_send;
create index concurrently purchases_to_send on purchases (transfer_sent_at nulls first)
  where money = 'open' and transfer_signature is not null;
drop index concurrently if exists purchases_unended;
create index concurrently purchases_unended on purchases (created_at)
  where ended_at is null and state <> 'waiting';
drop index concurrently if exists purchases_refunds;
create index concurrently purchases_refunds on purchases (refund_of) where refund_of is not null;
