-- Holds the index of the Transfer event of a payment from a purse.
alter table purchases add column log_index integer;
