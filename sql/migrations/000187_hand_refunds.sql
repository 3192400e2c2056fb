-- Holds the refunds that a seller makes by hand, because the payee is no purse of the service.
create table hand_refunds (
  row bigint generated always as identity primary key,
  id text not null unique,
  project_id text not null references projects (id) on delete cascade,
  payment_id text not null references payments (id),
  idempotency_key text not null check (length(idempotency_key) <= 255),
  request_hash bytea not null,
  created_by text not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  network text not null,
  asset text not null,
  -- These columns hold the addresses of the seller and of the buyer, in lower case.
  payer text not null,
  pay_to text not null,
  amount_atomic numeric(20, 0) not null,
  -- In the state `expected`, the seller must send the refund. In the state `claimed`, the service checks tx_hash on the
  -- chain. In the state `spent`, the chain shows the transfer.
  state text not null default 'expected' check (state in ('expected', 'claimed', 'spent', 'withdrawn')),
  tx_hash text,
  claimed_at timestamptz(3),
  -- Tells why the last claimed transaction does not count as the refund.
  reason text check (length(reason) <= 200),
  log_index integer,
  block_number bigint,
  block_hash text,
  spent_at timestamptz(3),
  final_at timestamptz(3),
  receipt text,
  told_at timestamptz(3),
  unique (project_id, idempotency_key),
  -- The constraint lets one transfer count for only one refund.
  unique (tx_hash, log_index),
  check ((state = 'spent') = (log_index is not null))
);
create index hand_refunds_payment on hand_refunds (payment_id, row);
create index hand_refunds_claimed on hand_refunds (claimed_at) where state = 'claimed';
create index hand_refunds_unfinal on hand_refunds (block_number) where state = 'spent' and final_at is null;
comment on table hand_refunds is 'Refunds that sellers make by hand, each proved by one transfer on the chain.';

-- Holds the signed receipt of a refund from a purse.
alter table purchases add column receipt text;
