-- Holds the header fields that the caller adds, by their names (X-*, List-*, Auto-Submitted). Null means that the
-- caller adds none.
alter table outbound_mails add column headers jsonb;
