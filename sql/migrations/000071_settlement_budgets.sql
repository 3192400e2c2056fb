-- What the settlements of a project cost the operator on a UTC day. The check holds the limit against two concurrent
-- statements. The second one fails as a whole. Its claims then run again one by one.
create table settlement_budgets (
  project_id text primary key references projects on delete cascade,
  day date not null,
  -- Claims made on the day.
  settlements bigint not null default 0,
  -- The limit at the last claim; null: none.
  allowed bigint,
  -- Gas of the transactions in a block, reverted ones included, by their receipts.
  gas bigint not null default 0,
  constraint settlement_budgets_within check (settlements <= allowed)
) with (fillfactor = 50);

-- Null: the service's limit.
alter table project_limits
  add column daily_settlements bigint check (daily_settlements >= 0),
  add column daily_gas bigint check (daily_gas >= 0);

-- The gas of the receipt; null: no block has the transaction yet.
alter table chain_transactions add column gas_used bigint;
