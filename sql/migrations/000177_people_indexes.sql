-- online: each statement runs alone, outside a transaction, and may run twice
-- These indexes find the rows that end together with a person.
drop index concurrently if exists console_links_of_person;
create index concurrently console_links_of_person on console_links (person_id);
drop index concurrently if exists console_sessions_of_person;
create index concurrently console_sessions_of_person on console_sessions (person_id);
drop index concurrently if exists oauth_grants_of_person;
create index concurrently oauth_grants_of_person on oauth_grants (person_id);
