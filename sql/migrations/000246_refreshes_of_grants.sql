-- Counts the refreshes of the tokens of an OAuth grant: each refresh moves this time a minute ahead, at most up to the
-- present. A time that lies more than 100 minutes back counts as 100 minutes back. Null means that there was no
-- refresh.
alter table oauth_grants add column refreshed_to timestamp(3) with time zone;
