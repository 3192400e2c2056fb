-- Terminology
--   purse      a project's own address on the chain; the service alone holds its key
--   mandate    an owner's permission for payments of the project, with limits on hosts, payees and sums
--   purchase   one request that is paid at most once, by one EIP-3009 authorization
--   open       signed, but neither settled on the chain nor expired: a seller may still settle it

create table purses (
  project_id text primary key references projects (id) on delete cascade,
  -- Holds the address of the key that signs now: 0x and 40 hexadecimal digits in lower case.
  address text not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  -- While this time is set, the purse signs nothing.
  frozen_at timestamptz(3),
  frozen_by text,
  -- If the balance falls below this amount, an event tells the owner.
  low_atomic numeric(20, 0),
  low_told_at timestamptz(3),
  balance_atomic numeric(20, 0),
  balance_block bigint,
  balance_at timestamptz(3)
);
comment on table purses is 'The purse of a project. Its lock comes before those of mandates and purchases.';
create index purses_balance_age on purses (balance_at nulls first);

create table purse_keys (
  address text primary key,
  project_id text not null references projects (id) on delete cascade,
  key_id text not null,
  wrapped_key bytea not null,
  ciphertext bytea not null,
  created_at timestamptz(3) not null default clock_timestamp()
);
create index purse_keys_project on purse_keys (project_id);
create index purse_keys_key on purse_keys (key_id);
comment on table purse_keys is 'Private keys of purses, sealed. Old ones stay, because they own what is left at their address.';

create table mandates (
  row bigint generated always as identity primary key,
  id text not null unique,
  project_id text not null references projects (id) on delete cascade,
  name text not null check (length(name) between 1 and 100),
  -- Holds the name of a task, which the owner sees in the account book.
  task text check (length(task) <= 100),
  network text not null,
  -- Holds exact hosts and `*.host`, as URL.host writes them.
  hosts text[] not null,
  -- Holds URLs without query. Each entry allows only this one URL.
  resources text[] not null,
  -- Holds addresses in lower case. Null means that the mandate allows any payee.
  payees text[],
  per_payment_atomic numeric(20, 0) not null,
  per_hour_atomic numeric(20, 0),
  per_day_atomic numeric(20, 0),
  per_month_atomic numeric(20, 0),
  total_atomic numeric(20, 0),
  payments_per_minute integer not null,
  -- A price above this amount needs the owner's approval. Null means that no price needs an approval because of its
  -- amount.
  ask_above_atomic numeric(20, 0),
  -- If a price exceeds the base price of the resource by more than this percentage, the payment needs the owner's
  -- approval.
  rise_percent integer not null,
  valid_from timestamptz(3) not null,
  valid_until timestamptz(3),
  state text not null default 'active' check (state in ('active', 'frozen', 'ended')),
  created_by text not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  changed_at timestamptz(3) not null default clock_timestamp(),
  -- These columns hold sums over all payments of the mandate. The open amount is reserved - spent - released.
  reserved_atomic numeric(30, 0) not null default 0,
  spent_atomic numeric(30, 0) not null default 0,
  released_atomic numeric(30, 0) not null default 0,
  check (cardinality(hosts) + cardinality(resources) > 0),
  check (payees is null or cardinality(payees) > 0),
  check (num_nonnulls(per_hour_atomic, per_day_atomic, per_month_atomic, total_atomic) > 0)
);
create index mandates_project on mandates (project_id, created_at desc, row desc);
comment on table mandates is 'What an owner allows a project to pay.';

create table mandate_hours (
  mandate_row bigint not null references mandates (row) on delete cascade,
  -- Holds the beginning of the hour, in UTC.
  hour timestamptz(3) not null,
  -- Holds the open and spent amount. A released amount is subtracted from the hour in which it was reserved.
  amount_atomic numeric(30, 0) not null,
  primary key (mandate_row, hour)
);
comment on table mandate_hours is 'What a mandate has reserved in each hour. Days and months are sums of hours.';

create table purchases (
  row bigint generated always as identity primary key,
  id text not null unique,
  project_id text not null references projects (id) on delete cascade,
  kind text not null check (kind in ('payment', 'quote')),
  -- Holds the Idempotency-Key. The service never frees the key, because a repeated request must never pay again.
  idempotency_key text check (length(idempotency_key) <= 255),
  request_hash bytea not null,
  -- In the states `queued` and `asking`, nothing is signed. In the state `waiting`, the owner decides. In the state
  -- `signed`, the service may send the request, and always with the same bytes.
  state text not null default 'queued'
    check (state in ('queued', 'asking', 'waiting', 'signed', 'answered', 'quoted', 'refused', 'failed', 'unknown')),
  -- Holds a code for the reason of a refusal or failure. The next column holds a sentence about it.
  reason text,
  detail text check (length(detail) <= 500),
  method text not null,
  host text not null,
  -- Holds the path of the URL without the query.
  path text not null,
  max_atomic numeric(20, 0) not null,
  -- Holds the SHA-256 of the payment terms that the owner approved.
  approved_hash bytea,
  -- Holds the reason for the purchase in the agent's own words.
  why text check (length(why) <= 500),
  -- Holds the prefix of the key that requested the purchase.
  asked_by text not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  ended_at timestamptz(3),
  -- Tells which encrypted content the row holds: the request, the request with its payment header, or later the
  -- seller's response.
  content_version integer not null default 1 check (content_version in (1, 2, 3)),
  key_id text,
  wrapped_key bytea,
  ciphertext bytea,
  content_until timestamptz(3),
  -- Holds the HTTP status of the last response of the seller.
  status integer,
  sends integer not null default 0,
  -- These columns hold the terms of the chosen offer in the 402 response, and the seller's texts about it.
  x402_version integer,
  network text,
  asset text,
  pay_to text,
  amount_atomic numeric(20, 0),
  resource text check (length(resource) <= 2048),
  description text check (length(description) <= 2048),
  -- These columns describe the authorization (EIP-3009). The terminology above explains `open`.
  money text check (money in ('open', 'spent', 'released')),
  payer text,
  nonce text,
  valid_before bigint,
  -- Holds the newest block at the time of the signature. No earlier block can contain the Transfer event.
  signed_block bigint,
  reserved_at timestamptz(3),
  -- These columns hold the base price from which a rise is measured, and the time since which it applies. Without a
  -- base price, many small rises could add up to a large rise without an approval.
  base_atomic numeric(20, 0),
  base_at timestamptz(3),
  -- These columns hold the transaction that settled the payment, and tell whether its block is final.
  tx_hash text,
  block_number bigint,
  block_hash text,
  spent_at timestamptz(3),
  final_at timestamptz(3),
  -- Holds the hash of the transaction that the seller names.
  claimed_tx text check (length(claimed_tx) <= 66),
  -- Holds a receipt or an offer that the seller signed, exactly as the service received it.
  seller_receipt text check (length(seller_receipt) <= 8192),
  told_at timestamptz(3),
  unique (project_id, idempotency_key),
  unique (payer, nonce),
  check ((key_id is null) = (ciphertext is null) and (key_id is null) = (wrapped_key is null)),
  check ((money is null) = (nonce is null))
);
alter table purchases alter column ciphertext set storage external;
create index purchases_project on purchases (project_id, created_at desc, row desc);
create index purchases_resource on purchases (project_id, host, path, row desc) where money is not null;
create index purchases_open on purchases (project_id, valid_before) where money = 'open';
create index purchases_unfinal on purchases (block_number) where money = 'spent' and final_at is null;
create index purchases_content on purchases (content_until) where key_id is not null;
create index purchases_key on purchases (key_id) where key_id is not null;
comment on table purchases is 'Requests that agents pay for, with what they cost.';

create table purchase_mandates (
  purchase_row bigint not null references purchases (row) on delete cascade,
  mandate_row bigint not null references mandates (row) on delete cascade,
  reserved_at timestamptz(3) not null,
  primary key (purchase_row, mandate_row)
);
create index purchase_mandates_recent on purchase_mandates (mandate_row, reserved_at);
comment on table purchase_mandates is 'The mandates in which a payment counts.';
