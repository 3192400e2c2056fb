-- Decoded bytes of attachments; what describes them stands with the message.
create table message_attachments (
  message_row bigint not null references messages on delete cascade,
  attachment_id text not null,
  bytes bytea not null,
  primary key (message_row, attachment_id)
);
-- Most attachments are compressed already.
alter table message_attachments alter column bytes set storage external;

-- Received messages that were deleted: a sender who lost our answer and sends again must not bring them back.
create table deleted_messages (
  project_id text not null references projects on delete cascade,
  content_hash bytea not null,
  deleted_at timestamptz(3) not null default clock_timestamp(),
  primary key (project_id, content_hash)
);
create index deleted_messages_age on deleted_messages (deleted_at);

-- What full-text search looks at (shared/searchTerms.ts); null until a worker has indexed an older message.
alter table messages add column search tsvector;
-- A small pending list: every search reads it from end to end.
create index messages_search on messages using gin (search) with (gin_pending_list_limit = 256);
create index messages_unindexed on messages (row) where search is null;
