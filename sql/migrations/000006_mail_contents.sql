-- Holds the decoded bytes of attachments. The column messages.attachments describes the attachments.
create table message_attachments (
  message_row bigint not null references messages on delete cascade,
  attachment_id text not null,
  bytes bytea not null,
  primary key (message_row, attachment_id)
);
-- PostgreSQL does not compress the bytes, because most attachments are already compressed.
alter table message_attachments alter column bytes set storage external;

-- Holds the hashes of deleted received messages. If a sender lost the response and sends such a message again, the
-- service must not restore it.
create table deleted_messages (
  project_id text not null references projects on delete cascade,
  content_hash bytea not null,
  deleted_at timestamptz(3) not null default clock_timestamp(),
  primary key (project_id, content_hash)
);
create index deleted_messages_age on deleted_messages (deleted_at);

-- Holds the search vector (shared/mail/search/searchTerms.ts). Null means that the message is old and no worker has
-- indexed it yet.
alter table messages add column search tsvector;
-- The pending list of the index is small, because every search reads the whole list.
create index messages_search on messages using gin (search) with (gin_pending_list_limit = 256);
create index messages_unindexed on messages (row) where search is null;
