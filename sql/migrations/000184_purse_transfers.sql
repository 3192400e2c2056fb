-- Transfers out of a purse that the owner orders: sweeps, and refunds of payments. They are rows of purchases, so that
-- their money is followed on the chain in the same way.
alter table purchases drop constraint purchases_kind_check;
alter table purchases add constraint purchases_kind_check
  check (kind in ('payment', 'quote', 'sweep', 'refund')) not valid;
alter table purchases
  -- The signature of the transfer, which a gas wallet of the service sends; null: a seller settles.
  add column transfer_signature text,
  add column transfer_sent_at timestamptz(3),
  -- When the chain first showed the cancellation; its block may not be final.
  add column cancel_seen_at timestamptz(3),
  -- The payment that a refund pays back.
  add column refund_of text;
