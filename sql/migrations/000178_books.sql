-- What a transaction cost in the chain's native coin, and the addresses that a project itself pays from.
alter table chain_transactions add column fee_wei numeric(78, 0);
alter table projects add column own_addresses text[] not null default '{}';
