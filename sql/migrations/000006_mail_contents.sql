-- Decoded bytes of attachments; messages.attachments describes them.
create table message_attachments (
  message_row bigint not null references messages on delete cascade,
  attachment_id text not null,
  bytes bytea not null,
  primary key (message_row, attachment_id)
);
-- Most attachments are already compressed.
alter table message_attachments alter column bytes set storage external;

-- Hashes of deleted received messages: a retransmission after a lost answer must not restore them.
create table deleted_messages (
  project_id text not null references projects on delete cascade,
  content_hash bytea not null,
  deleted_at timestamptz(3) not null default clock_timestamp(),
  primary key (project_id, content_hash)
);
create index deleted_messages_age on deleted_messages (deleted_at);

-- The search vector (shared/mail/search/searchTerms.ts); null: an older message that no worker has indexed yet.
alter table messages add column search tsvector;
-- A small pending list: every search reads all of it.
create index messages_search on messages using gin (search) with (gin_pending_list_limit = 256);
create index messages_unindexed on messages (row) where search is null;
