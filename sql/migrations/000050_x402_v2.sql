-- Holds the version of x402 in which the payment came: 1 or 2.
alter table payments add column x402_version smallint not null default 1;

-- Tells who named the resource: `seller`, or `payer` if only the unsigned copy in the payment names it. The new columns
-- of this migration have no check constraints, because such a constraint would read the whole table under an exclusive
-- lock.
alter table payments add column resource_source text not null default 'seller';

-- Holds the name that the payer gave to the payment (x402 extension `payment-identifier`).
alter table payments add column payment_identifier text;

-- Tells whether the seller wants the endpoint in the public list of paid resources.
alter table seller_endpoints add column discoverable boolean not null default false;
-- Holds the versions of x402 in the challenge that the last verification found.
alter table seller_endpoints add column challenge_versions smallint[] not null default '{}';
