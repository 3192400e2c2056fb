-- Holds the payTo addresses, in lower case, in the challenge that the last verification found. These addresses tell who
-- sells at the URL.
alter table seller_endpoints add column challenge_pay_to text[] not null default '{}';
