-- What a purse keeps at most, and where the rest goes.
alter table purses
  add column max_atomic numeric(20, 0),
  -- The owner's address, in lower case; null: nothing leaves by itself.
  add column payout_address text,
  -- A new address waits, so that whoever took over a session gains nothing at once.
  add column payout_next text,
  add column payout_next_at timestamptz(3);

-- Retired keys: what comes to their address later goes to the new one.
alter table purse_keys
  add column retired_at timestamptz(3),
  add column balance_atomic numeric(20, 0),
  add column balance_block bigint,
  add column balance_at timestamptz(3);
