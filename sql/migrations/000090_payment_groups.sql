-- Terminology
--   group  one transaction that settles several payments; each succeeds or fails by itself

-- Holds the payments of each group transaction. A transaction of a single payment names the payment in its own row.
create table chain_transaction_payments (
  hash text not null references chain_transactions on delete cascade,
  payment_id text not null references payments,
  primary key (hash, payment_id)
);
create index chain_transaction_payments_payment on chain_transaction_payments (payment_id);

-- Lists every transaction with each of its payments. The view leaves out a transaction that only fills a nonce.
create view transaction_payments as
  select hash, payment_id from chain_transactions where payment_id is not null
  union all
  select hash, payment_id from chain_transaction_payments;

alter table payments
  -- Holds the time before which no settler (worker that settles payments) may take the payment, because a settler is
  -- working on it, or because it waits after a problem. Null means that a settler may take the payment now.
  add column settle_after timestamptz(3),
  -- The value true means that a group transaction with this payment has reverted, or did not transfer its money. The
  -- payment then needs its own transaction.
  add column goes_alone boolean not null default false,
  -- Holds the index of the payment's Transfer event in its block.
  add column log_index integer;

-- Holds payers whose address had no contract code at the signature, but whose group transaction then reverted as a
-- whole. Until the time in the row, each payment of such a payer gets its own transaction.
create table lone_payers (
  chain_id bigint not null,
  -- Holds the payer's address in lower case.
  payer text not null,
  until timestamptz(3) not null,
  primary key (chain_id, payer)
);
