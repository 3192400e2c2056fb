-- The tables hold an index of words in place of messages_search. In messages_search, every word of every mail was a
-- separate key, which made 79 % of the WAL of a mail. Here a job indexes the words of 240 mails of a project at once
-- (docs/decisions/search-segments.md).
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
  -- These columns hold the times of the oldest and the newest message of the leaf (a group of messages).
  since timestamptz(3) not null,
  until timestamptz(3) not null,
  -- Lists the messages by their position in the leaf, oldest first. A deleted message keeps its position.
  message_rows bigint[] not null check (cardinality(message_rows) between 1 and 240),
  primary key (project_id, leaf)
) with (toast_tuple_target = 4080);
comment on table search_leaves is 'Up to 240 messages of a project whose words stand in a segment.';

create table search_segments (
  id bigint generated always as identity primary key,
  project_id text not null,
  first_leaf int not null,
  last_leaf int not null check (last_leaf >= first_leaf),
  -- These columns hold the times of the oldest and the newest message of the segment's leaves (groups of messages).
  since timestamptz(3) not null,
  until timestamptz(3) not null,
  -- Holds the time at which the service last searched for deleted messages of the segment.
  checked_at timestamptz(3) not null default clock_timestamp(),
  -- The constraint is deferred, because the service writes a larger segment before it deletes the smaller ones.
  unique (project_id, first_leaf) deferrable initially deferred
);
comment on table search_segments is 'The sorted words of 1, 16 or 256 neighbouring leaves. Sixteen become one.';
create index search_segments_checked on search_segments (checked_at);

create table search_blocks (
  segment_id bigint not null references search_segments on delete cascade,
  first_term bytea not null,
  -- Holds the words and their messages in the form of shared/mail/search/termBlocks.ts.
  terms bytea not null,
  primary key (segment_id, first_term)
);
comment on table search_blocks is 'A piece of the sorted words of a segment, each with the messages that hold it.';

-- The trigger checks only about once in 32 messages whether a project has a leaf (a group of messages) to build,
-- because a check for each message would cost more.
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

-- The update waits for a job that is building a leaf (a group of messages) with the old words, and then adds the row
-- again.
create function keep_search_changed() returns trigger language plpgsql as $$
begin
  insert into search_pending (project_id, created_at, message_row, text_bytes)
  values (new.project_id, new.created_at, new.row, new.text_bytes)
  on conflict (project_id, created_at, message_row) do update set text_bytes = excluded.text_bytes;
  return null;
end $$;
create trigger messages_search_changed after update of search on messages
  for each row execute function keep_search_changed();
