-- Header fields that the caller adds, by name (X-*, List-*, Auto-Submitted); null: none.
alter table outbound_mails add column headers jsonb;
