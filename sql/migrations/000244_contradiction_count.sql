-- Counts how often one simulation refused a payment of a wallet contract and the next simulation accepted it.
alter table payments add column contradiction_count smallint not null default 0;
