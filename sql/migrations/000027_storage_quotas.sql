-- Holds the size of a message in bytes, which counts towards the storage quota of its project. The size is that of the
-- received bytes, or of the text and attachments of a sent message. Messages of an earlier version count nothing.
alter table messages add column stored_bytes bigint not null default 0;

-- Holds the number of bytes of each project's mail. Triggers on messages maintain it, so that no code can forget to
-- update it.
create table project_storage (
  project_id text primary key references projects on delete cascade,
  bytes bigint not null
) with (fillfactor = 50);

-- Holds the limits of a project that differ from those of the service. Null means that the service's limit applies.
create table project_limits (
  project_id text primary key references projects on delete cascade,
  storage_bytes bigint check (storage_bytes >= 0)
);

-- The function locks the rows in the order of the projects, so that two statements for several projects cannot
-- deadlock.
create function count_storage() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into project_storage as s (project_id, bytes)
    select project_id, sum(stored_bytes) from changed group by project_id order by project_id
    on conflict (project_id) do update set bytes = s.bytes + excluded.bytes;
  else
    update project_storage s set bytes = greatest(0, s.bytes - c.bytes)
    from (select project_id, sum(stored_bytes) as bytes from changed group by project_id order by project_id) c
    where s.project_id = c.project_id;
  end if;
  return null;
end $$;
create trigger messages_storage_added after insert on messages
  referencing new table as changed for each statement execute function count_storage();
create trigger messages_storage_removed after delete on messages
  referencing old table as changed for each statement execute function count_storage();
