-- An erasure now also removes the chain addresses of the project. This migration removes the addresses from the projects
-- that were erased before.
update projects set pay_to = null, own_addresses = '{}'
where erased_at is not null and (pay_to is not null or own_addresses <> '{}');
