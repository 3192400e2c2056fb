-- Terminology
--   payment      one claimed authorization of one payer, from its claim to its end
--   claim        takes an authorization, once: unique by chain, asset, payer and nonce
--   grant        the one answer `ok: true` of a payment
--   check        the on-chain judgement of an authorization before its claim
--   transaction  one signed transaction of a gas wallet; several may compete for one nonce

-- The chain head as the payment workers last saw it. The API has no RPC connection and reads this row.
create table chain_status (
  singleton boolean primary key default true check (singleton),
  -- Null: the RPC has never answered.
  chain_id bigint,
  network text,
  head_number bigint,
  head_hash text,
  rpc_error text,
  checked_at timestamptz(3) not null
);

-- The payments of all projects.
create table payments (
  id text primary key,
  row bigint generated always as identity unique,
  -- No cascade: payments outlive their project, for audit.
  project_id text not null references projects,
  endpoint_id text references seller_endpoints on delete set null,
  match_key text,
  resource_url text not null,
  description text,
  network text not null,
  chain_id bigint not null,
  asset text not null,
  payer text not null,
  recipient text not null,
  amount_atomic bigint not null check (amount_atomic > 0),
  valid_after numeric(78) not null,
  valid_before numeric(78) not null,
  authorization_nonce text not null,
  -- The broadcast form.
  signature text not null,
  -- The chain head at the claim. An authorization used before this block paid for another resource.
  claim_head bigint,
  state text not null default 'verified' check (state in ('verified', 'settled', 'failed')),
  failure_stage text check (failure_stage in ('verify', 'settle')),
  failure_reason text,
  failure_detail text,
  -- The last trouble on our side (RPC, gas); no verdict on the payment.
  trouble text,
  trouble_count integer not null default 0,
  revert_count integer not null default 0,
  tx_hash text,
  block_number bigint,
  block_hash text,
  signed_receipt text,
  granted_at timestamptz(3),
  grant_key text,
  created_at timestamptz(3) not null default clock_timestamp(),
  settled_at timestamptz(3),
  finalized_at timestamptz(3),
  check ((state = 'failed') = (failure_reason is not null)),
  check (state <> 'settled' or (tx_hash is not null and signed_receipt is not null))
);
create unique index payments_claim on payments (chain_id, asset, lower(payer), authorization_nonce);
create index payments_listing on payments (project_id, created_at desc, row desc);
create index payments_verified on payments (created_at) where state = 'verified';
create index payments_unfinalized on payments (block_number) where state = 'settled' and finalized_at is null;

-- Checks of authorizations by the payment workers.
create table payment_checks (
  id text primary key,
  project_id text not null references projects,
  -- The claim to make if the authorization passes (ClaimRecord in sql/till/settle/claims.ts).
  claim jsonb not null,
  -- True: claim a passing authorization. False: the facilitator's verify.
  claims boolean not null,
  erc6492 boolean not null,
  reason_without_code text,
  state text not null default 'open' check (state in ('open', 'passed', 'refused')),
  reason text,
  payment_id text references payments,
  created_at timestamptz(3) not null default clock_timestamp()
);
create index payment_checks_age on payment_checks (created_at);

-- The next nonce of each gas wallet.
create table gas_wallets (
  chain_id bigint not null,
  address text not null,
  next_nonce bigint not null,
  primary key (chain_id, address)
);

-- The signed transactions of the gas wallets, stored before their broadcast.
create table chain_transactions (
  hash text primary key,
  chain_id bigint not null,
  wallet text not null,
  nonce bigint not null,
  -- Null: the transaction only fills a nonce.
  payment_id text references payments,
  raw text not null,
  max_fee_wei numeric(78) not null,
  tip_wei numeric(78) not null,
  -- void: another transaction used its nonce.
  state text not null default 'open' check (state in ('open', 'mined', 'void')),
  succeeded boolean,
  block_number bigint,
  block_hash text,
  signed_at timestamptz(3) not null default clock_timestamp(),
  sent_at timestamptz(3),
  send_count integer not null default 0,
  -- The chain head at the first broadcast: later blocks have passed the transaction by.
  sent_head bigint,
  send_error text,
  foreign key (chain_id, wallet) references gas_wallets
);
create index chain_transactions_open on chain_transactions (chain_id, wallet, nonce) where state = 'open';
create index chain_transactions_slot on chain_transactions (chain_id, wallet, nonce);
create index chain_transactions_payment on chain_transactions (payment_id);

-- The public keys of all receipt signing keys, retired ones included: receipts outlive keys.
create table receipt_keys (
  kid text primary key,
  did text not null,
  public_key_hex text not null,
  registered_at timestamptz(3) not null default clock_timestamp(),
  signs_since timestamptz(3)
);

-- The idempotency keys of requests, with the stored answers.
create table idempotency_keys (
  project_id text not null references projects on delete cascade,
  operation text not null,
  key text not null,
  request_hash bytea not null,
  -- The stored answer; null: none yet.
  result text,
  created_at timestamptz(3) not null default clock_timestamp(),
  primary key (project_id, operation, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);
