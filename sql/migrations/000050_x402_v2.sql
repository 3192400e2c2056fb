-- The version of x402 that the payment came in: 1 or 2.
alter table payments add column x402_version smallint not null default 1;

-- Who named the resource: seller, or payer if only the unsigned copy in the payment did. No check constraints here and
-- above: they would read the whole table under an exclusive lock.
alter table payments add column resource_source text not null default 'seller';

-- The payer's own name of the payment (x402 extension `payment-identifier`).
alter table payments add column payment_identifier text;

-- The seller wants the endpoint in the public list of paid resources.
alter table seller_endpoints add column discoverable boolean not null default false;
-- The versions of x402 in the challenge that the last verification saw.
alter table seller_endpoints add column challenge_versions smallint[] not null default '{}';
