-- The names beside the addresses in To and Cc, by address; null: none.
alter table outbound_mails add column names jsonb;
-- The name in From; null: the name of the project.
alter table projects add column display_name text;
