-- The signed gas limit, and the hash of the payer's code at the signing. Null: an older row, or a payer without code.
alter table chain_transactions add column gas_limit bigint, add column payer_code text;

-- Contract wallets whose transaction passed the simulation and reverted on chain. They wait before they may pay again.
create table wallet_suspensions (
  chain_id bigint not null,
  -- In lower case.
  payer text not null,
  payer_code text not null,
  payment_id text not null references payments,
  suspended_at timestamptz(3) not null default clock_timestamp(),
  primary key (chain_id, payer)
);
create index wallet_suspensions_code on wallet_suspensions (chain_id, payer_code);

-- The code of contract wallets that have paid. Shared: wallets at two addresses have, as with the proxies of one product.
create table wallet_codes (
  chain_id bigint not null,
  code text not null,
  -- The first payer, in lower case.
  payer text not null,
  is_shared boolean not null default false,
  primary key (chain_id, code)
);
