-- Holds what the settlements of a project cost the operator on a UTC day. The check constraint enforces the limit even
-- for two concurrent statements. The second statement then fails as a whole, and the service repeats its claims (the
-- storing of payments) one by one.
create table settlement_budgets (
  project_id text primary key references projects on delete cascade,
  day date not null,
  -- Counts the claims of the day (payments that the service has accepted for settlement).
  settlements bigint not null default 0,
  -- Holds the limit on claims (stored payments) that applied at the last claim. Null means no limit.
  allowed bigint,
  -- Holds the gas of the project's transactions in blocks of the chain, as their receipts state it. The gas of reverted
  -- transactions counts too.
  gas bigint not null default 0,
  constraint settlement_budgets_within check (settlements <= allowed)
) with (fillfactor = 50);

-- Null means that the service's limit applies.
alter table project_limits
  add column daily_settlements bigint check (daily_settlements >= 0),
  add column daily_gas bigint check (daily_gas >= 0);

-- Holds the gas that the transaction receipt states. Null means that no block contains the transaction yet.
alter table chain_transactions add column gas_used bigint;
