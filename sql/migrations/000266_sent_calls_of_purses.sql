-- Counts how often the service has sent a purse's call to the chain, because the waits between the sendings grow.
alter table purchases add column calls_sent smallint not null default 0;
comment on column purchases.calls_sent is 'The service has sent the present call (a cancellation or a transfer) of this payment to the chain this often.';
