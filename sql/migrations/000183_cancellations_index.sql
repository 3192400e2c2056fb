-- online: each statement runs alone, outside a transaction, and may run twice
-- The index lists the cancellations that the service must send. The cancellation that has waited longest comes first.
drop index concurrently if exists purchases_to_cancel;
create index concurrently purchases_to_cancel on purchases (cancel_sent_at nulls first)
  where money = 'open' and cancel_signature is not null;
