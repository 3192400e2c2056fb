-- This migration adds the cost of a transaction in the chain's native coin, and the addresses from which a project
-- itself pays.
alter table chain_transactions add column fee_wei numeric(78, 0);
alter table projects add column own_addresses text[] not null default '{}';
