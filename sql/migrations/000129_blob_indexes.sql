-- online: each statement runs alone, outside a transaction, and may run twice
-- These indexes find the rows that name an object, for the sweep job and for the checks of the foreign keys.
drop index concurrently if exists raw_mails_blob_of;
create index concurrently raw_mails_blob_of on raw_mails (blob) where blob is not null;
drop index concurrently if exists message_attachments_blob_of;
create index concurrently message_attachments_blob_of on message_attachments (blob) where blob is not null;
