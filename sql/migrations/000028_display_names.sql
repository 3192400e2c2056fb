-- Holds the names beside the addresses in To and Cc, by address. Null means that no address has a name.
alter table outbound_mails add column names jsonb;
-- Holds the name in From. Null means that the name of the project is used.
alter table projects add column display_name text;
