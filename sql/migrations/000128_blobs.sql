-- Holds the keys of mail contents in an object store. The column `hash` is the name of the object: the SHA-256 of the
-- encrypted bytes. Without the column `key`, which no other place holds, nobody can read the object.
create table blobs (
  hash bytea primary key check (octet_length(hash) = 32),
  key bytea not null check (octet_length(key) = 32),
  -- These columns describe the content before its encryption: its number of bytes and its SHA-256.
  size integer not null,
  content_hash bytea not null check (octet_length(content_hash) = 32),
  created_at timestamptz(3) not null default clock_timestamp(),
  -- Holds the time since which no row has named the object. Null means that a row names it. A new row is idle first,
  -- because the service stores it before the object, and the object before the row that names it.
  idle_since timestamptz(3) default clock_timestamp()
);
create index blobs_idle on blobs (idle_since) where idle_since is not null;

-- Holds the objects that the service must remove from the store. No row can name them any more.
create table dead_blobs (
  hash bytea primary key,
  died_at timestamptz(3) not null default clock_timestamp()
);
create index dead_blobs_age on dead_blobs (died_at);

-- Holds the hash of the object that has the content in place of the column `bytes`, which is then empty.
alter table raw_mails add column blob bytea;
alter table raw_mails add constraint raw_mails_blob foreign key (blob) references blobs not valid;
alter table message_attachments add column blob bytea;
alter table message_attachments add constraint message_attachments_blob foreign key (blob) references blobs not valid;

-- A trigger records when no row names an object any more, because rows of a message are deleted in many ways, and none
-- of them may forget the object.
create function follow_blob() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' and old.blob is not null then
    update blobs set idle_since = clock_timestamp() where hash = old.blob;
  end if;
  if tg_op <> 'DELETE' and new.blob is not null then
    update blobs set idle_since = null where hash = new.blob;
  end if;
  return null;
end $$;

create trigger raw_mails_blob_named after insert on raw_mails
  for each row when (new.blob is not null) execute function follow_blob();
create trigger raw_mails_blob_changed after update of blob on raw_mails
  for each row when (new.blob is distinct from old.blob) execute function follow_blob();
create trigger raw_mails_blob_left after delete on raw_mails
  for each row when (old.blob is not null) execute function follow_blob();
create trigger message_attachments_blob_named after insert on message_attachments
  for each row when (new.blob is not null) execute function follow_blob();
create trigger message_attachments_blob_changed after update of blob on message_attachments
  for each row when (new.blob is distinct from old.blob) execute function follow_blob();
create trigger message_attachments_blob_left after delete on message_attachments
  for each row when (old.blob is not null) execute function follow_blob();
