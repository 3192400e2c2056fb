-- Transfers that the owner orders out of a purse are sweeps and refunds of payments. They are rows of purchases, so
-- that the service follows their money on the chain in the same way.
alter table purchases drop constraint purchases_kind_check;
alter table purchases add constraint purchases_kind_check
  check (kind in ('payment', 'quote', 'sweep', 'refund')) not valid;
alter table purchases
  -- Holds the signature of a transfer that a gas wallet of the service sends. Null means that a seller settles the
  -- payment.
  add column transfer_signature text,
  add column transfer_sent_at timestamptz(3),
  -- Holds the time at which the chain first showed the cancellation, whose block may not be final yet.
  add column cancel_seen_at timestamptz(3),
  -- Holds the id of the payment that a refund pays back.
  add column refund_of text;
