-- Holds the messages of each label, newest first. A trigger maintains the table. A GIN index over the label arrays
-- would be slow: before the first page, it would read all messages of every tenant with the label.
create table message_labels (
  project_id text not null,
  label text not null,
  created_at timestamptz(3) not null,
  message_row bigint not null references messages on delete cascade,
  primary key (project_id, label, created_at, message_row)
);
create index message_labels_message on message_labels (message_row);

insert into message_labels (project_id, label, created_at, message_row)
select distinct project_id, unnest(labels), created_at, row from messages;

drop index messages_labels;

create function keep_message_labels() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    delete from message_labels where message_row = new.row and label <> all (new.labels);
  end if;
  insert into message_labels (project_id, label, created_at, message_row)
  select distinct new.project_id, unnest(new.labels), new.created_at, new.row
  on conflict do nothing;
  return null;
end $$;
create trigger messages_labels_kept after insert or update of labels on messages
  for each row execute function keep_message_labels();
