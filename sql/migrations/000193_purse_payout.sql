-- These columns hold the maximum balance of a purse, and the address to which the rest goes.
alter table purses
  add column max_atomic numeric(20, 0),
  -- Holds the owner's address in lower case. Null means that no money leaves the purse automatically.
  add column payout_address text,
  -- A new address becomes valid only after a waiting time, so that a thief of a session gains nothing at once.
  add column payout_next text,
  add column payout_next_at timestamptz(3);

-- These columns belong to retired keys. Money that later comes to the address of a retired key goes to the new address.
alter table purse_keys
  add column retired_at timestamptz(3),
  add column balance_atomic numeric(20, 0),
  add column balance_block bigint,
  add column balance_at timestamptz(3);
