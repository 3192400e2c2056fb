-- Terminology
--   group  one transaction that settles several payments; each succeeds or fails by itself

-- The payments of each group. A transaction of one payment names it in its own row.
create table chain_transaction_payments (
  hash text not null references chain_transactions on delete cascade,
  payment_id text not null references payments,
  primary key (hash, payment_id)
);
create index chain_transaction_payments_payment on chain_transaction_payments (payment_id);

-- Every transaction with each of its payments. A transaction that only fills a nonce has none.
create view transaction_payments as
  select hash, payment_id from chain_transactions where payment_id is not null
  union all
  select hash, payment_id from chain_transaction_payments;

alter table payments
  -- Before this time no settler takes the payment: one has it in hand, or it waits after trouble. Null: take it.
  add column settle_after timestamptz(3),
  -- A group has reverted with it, or has not transferred it.
  add column goes_alone boolean not null default false,
  -- The index of its Transfer event in its block.
  add column log_index integer;

-- Payers without code at the signing whose group then reverted as a whole. Until then their payments go alone.
create table lone_payers (
  chain_id bigint not null,
  -- In lower case.
  payer text not null,
  until timestamptz(3) not null,
  primary key (chain_id, payer)
);
