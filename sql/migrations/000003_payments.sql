-- Terminology
--   payment      one claimed authorization of one payer, from its claim to its end
--   claim        the storing of an authorization as a payment; unique by chain, asset, payer and nonce
--   grant        the only response `ok: true` to a payment, which lets the seller deliver
--   check        the simulation of an authorization on the chain before its claim
--   transaction  one signed transaction of a gas wallet; several may compete for one nonce

-- Holds the newest block of the chain that the payment workers have seen. The API reads this row, because it has no RPC
-- connection.
create table chain_status (
  singleton boolean primary key default true check (singleton),
  -- Null means that the RPC node has never responded.
  chain_id bigint,
  network text,
  head_number bigint,
  head_hash text,
  rpc_error text,
  checked_at timestamptz(3) not null
);

-- Holds the payments of all projects.
create table payments (
  id text primary key,
  row bigint generated always as identity unique,
  -- The foreign key does not cascade, because payments outlive their project for audit.
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
  -- Holds the signature in the form in which the service sends it to the chain.
  signature text not null,
  -- Holds the newest block of the chain at the time of the claim (the storing of the payment). If the authorization was
  -- used before this block, it paid for another resource.
  claim_head bigint,
  state text not null default 'verified' check (state in ('verified', 'settled', 'failed')),
  failure_stage text check (failure_stage in ('verify', 'settle')),
  failure_reason text,
  failure_detail text,
  -- Holds the last problem of the service (RPC or gas) with this payment. Such a problem is no verdict on the payment.
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

-- Holds the checks of authorizations that the payment workers make.
create table payment_checks (
  id text primary key,
  project_id text not null references projects,
  -- Holds the data of the claim (the storing of the payment) that the worker makes if the authorization passes the
  -- check (ClaimRecord in sql/till/settle/claims.ts).
  claim jsonb not null,
  -- The value true means that the worker claims an authorization that passes the check (stores it as a payment). The
  -- value false belongs to a verify call of the facilitator, which claims nothing.
  claims boolean not null,
  erc6492 boolean not null,
  reason_without_code text,
  state text not null default 'open' check (state in ('open', 'passed', 'refused')),
  reason text,
  payment_id text references payments,
  created_at timestamptz(3) not null default clock_timestamp()
);
create index payment_checks_age on payment_checks (created_at);

-- Holds the next nonce of each gas wallet.
create table gas_wallets (
  chain_id bigint not null,
  address text not null,
  next_nonce bigint not null,
  primary key (chain_id, address)
);

-- Holds the signed transactions of the gas wallets. The service stores a transaction before it broadcasts the
-- transaction.
create table chain_transactions (
  hash text primary key,
  chain_id bigint not null,
  wallet text not null,
  nonce bigint not null,
  -- Null means that the transaction only fills a gap in the nonces.
  payment_id text references payments,
  raw text not null,
  max_fee_wei numeric(78) not null,
  tip_wei numeric(78) not null,
  -- The state `void` means that another transaction has used the nonce.
  state text not null default 'open' check (state in ('open', 'mined', 'void')),
  succeeded boolean,
  block_number bigint,
  block_hash text,
  signed_at timestamptz(3) not null default clock_timestamp(),
  sent_at timestamptz(3),
  send_count integer not null default 0,
  -- Holds the newest block at the first broadcast. Only later blocks can contain the transaction.
  sent_head bigint,
  send_error text,
  foreign key (chain_id, wallet) references gas_wallets
);
create index chain_transactions_open on chain_transactions (chain_id, wallet, nonce) where state = 'open';
create index chain_transactions_slot on chain_transactions (chain_id, wallet, nonce);
create index chain_transactions_payment on chain_transactions (payment_id);

-- Holds the public keys of all receipt signing keys. Retired keys stay here, because receipts are valid longer than
-- their keys sign.
create table receipt_keys (
  kid text primary key,
  did text not null,
  public_key_hex text not null,
  registered_at timestamptz(3) not null default clock_timestamp(),
  signs_since timestamptz(3)
);

-- Holds the idempotency keys of requests with the stored responses.
create table idempotency_keys (
  project_id text not null references projects on delete cascade,
  operation text not null,
  key text not null,
  request_hash bytea not null,
  -- Holds the stored response. Null means that the request has no response yet.
  result text,
  created_at timestamptz(3) not null default clock_timestamp(),
  primary key (project_id, operation, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);
