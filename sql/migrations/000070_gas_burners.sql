-- These columns hold the signed gas limit, and the hash of the contract code at the payer's address at the time of the
-- signature. Null means that the row is old, or that the payer's address has no code.
alter table chain_transactions add column gas_limit bigint, add column payer_code text;

-- Holds contract wallets whose transaction passed the simulation but reverted on the chain. These wallets must wait
-- before they may pay again.
create table wallet_suspensions (
  chain_id bigint not null,
  -- Holds the payer's address in lower case.
  payer text not null,
  payer_code text not null,
  payment_id text not null references payments,
  suspended_at timestamptz(3) not null default clock_timestamp(),
  primary key (chain_id, payer)
);
create index wallet_suspensions_code on wallet_suspensions (chain_id, payer_code);

-- Holds the code hashes of contract wallets that have paid. A code counts as shared if wallets at two addresses have
-- paid with it, as with the proxies of one product.
create table wallet_codes (
  chain_id bigint not null,
  code text not null,
  -- Holds the address of the first payer with this code, in lower case.
  payer text not null,
  is_shared boolean not null default false,
  primary key (chain_id, code)
);
