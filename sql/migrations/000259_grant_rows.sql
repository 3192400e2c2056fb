-- Orders the grants of one millisecond, so that a list of grants has pages. An owner can end only a grant that the list
-- shows. PostgreSQL writes the whole table again. The table is small, because each app that an owner allowed has one row.
-- squawk-ignore adding-field-with-default
alter table oauth_grants add column row bigint generated always as identity;
