-- An index of words in place of messages_search, whose every word of every mail was a key of its own: 79 % of the WAL of a
-- mail. Here a job takes the words of 240 mails of a project at once (docs/decisions/search-segments.md).
create table search_pending (
  project_id text not null,
  created_at timestamptz(3) not null,
  message_row bigint not null,
  text_bytes int not null,
  primary key (project_id, created_at, message_row)
);
comment on table search_pending is 'Messages whose words no segment holds yet. A search reads each of them.';

create table search_leaves (
  project_id text not null,
  leaf int not null,
  -- The oldest and the newest time of a message of the leaf.
  since timestamptz(3) not null,
  until timestamptz(3) not null,
  -- By place, oldest first. A deleted message keeps its place.
  message_rows bigint[] not null check (cardinality(message_rows) between 1 and 240),
  primary key (project_id, leaf)
) with (toast_tuple_target = 4080);
comment on table search_leaves is 'Up to 240 messages of a project whose words stand in a segment.';

create table search_segments (
  id bigint generated always as identity primary key,
  project_id text not null,
  first_leaf int not null,
  last_leaf int not null check (last_leaf >= first_leaf),
  -- The oldest and the newest time of a message of its leaves.
  since timestamptz(3) not null,
  until timestamptz(3) not null,
  -- When its deleted messages were last looked for.
  checked_at timestamptz(3) not null default clock_timestamp(),
  -- A larger segment is written before the smaller ones are deleted.
  unique (project_id, first_leaf) deferrable initially deferred
);
comment on table search_segments is 'The sorted words of 1, 16 or 256 neighbouring leaves. Sixteen become one.';
create index search_segments_checked on search_segments (checked_at);

create table search_blocks (
  segment_id bigint not null references search_segments on delete cascade,
  first_term bytea not null,
  -- shared/mail/search/termBlocks.ts
  terms bytea not null,
  primary key (segment_id, first_term)
);
comment on table search_blocks is 'A piece of the sorted words of a segment, each with the messages that hold it.';

-- Once in some 32 messages it is looked whether a project has a leaf to build: to look each time would cost more.
create function keep_search_pending() returns trigger language plpgsql as $$
begin
  insert into search_pending (project_id, created_at, message_row, text_bytes)
  select project_id, created_at, row, text_bytes from added;
  perform queue_jobs(array(
    select row('index_search', json_build_object('projectId', looked.project_id), null, null, null,
               'index_search:' || looked.project_id, null, null)::graphile_worker.job_spec
    from (
      select distinct project_id from added where random() < 1.0 / 32 + text_bytes / 524288.0
    ) looked
    where (
      select count(*) >= 240 or sum(text_bytes) >= 2097152
      from (select text_bytes from search_pending p where p.project_id = looked.project_id limit 240) pending
    ) and not exists (select from graphile_worker.jobs where key = 'index_search:' || looked.project_id)
    order by looked.project_id));
  return null;
end $$;
create trigger messages_search_added after insert on messages
  referencing new table as added for each statement execute function keep_search_pending();

-- The update waits for a job that builds a leaf of the old words, and then adds the row again.
create function keep_search_changed() returns trigger language plpgsql as $$
begin
  insert into search_pending (project_id, created_at, message_row, text_bytes)
  values (new.project_id, new.created_at, new.row, new.text_bytes)
  on conflict (project_id, created_at, message_row) do update set text_bytes = excluded.text_bytes;
  return null;
end $$;
create trigger messages_search_changed after update of search on messages
  for each row execute function keep_search_changed();
