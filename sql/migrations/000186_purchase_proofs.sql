alter table purchases
  -- Holds the name of the vault credential whose fields the request uses.
  add column credential_name text,
  -- Holds the MCP tool that the request calls. Null means that the request is a plain HTTP request.
  add column tool text,
  -- Holds the time at which the purse signed in at the seller instead of paying (sign-in-with-x).
  add column signed_in_at timestamptz(3),
  -- Holds the offer that the seller signed, exactly as the service received it (extension offer-receipt).
  add column seller_offer text,
  -- These columns tell what the signatures of the receipt and the offer prove.
  add column receipt_verdict text,
  add column offer_verdict text;
