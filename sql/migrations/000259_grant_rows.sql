-- Orders the grants of one millisecond, so that a list of grants has pages. An owner can end only a grant that the list
-- shows. PostgreSQL writes the table again, which is small: it has one row for each app that an owner allowed.
-- squawk-ignore adding-field-with-default
alter table oauth_grants add column row bigint generated always as identity;
