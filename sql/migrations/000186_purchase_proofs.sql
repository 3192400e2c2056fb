alter table purchases
  -- The credential of the vault whose fields the request holds.
  add column credential_name text,
  -- The MCP tool that the request calls; null: the request is plain HTTP.
  add column tool text,
  -- When the purse signed in at the seller instead of paying (sign-in-with-x).
  add column signed_in_at timestamptz(3),
  -- The offer that the seller signed, as it came (extension offer-receipt).
  add column seller_offer text,
  -- What the signatures of receipt and offer prove.
  add column receipt_verdict text,
  add column offer_verdict text;
