-- Holds the texts of attachments. A worker reads each attachment after its message is stored. The column
-- messages.attachments repeats the state and the length.
create table attachment_texts (
  message_row bigint not null references messages on delete cascade,
  attachment_id text not null check (length(attachment_id) <= 64),
  project_id text not null,
  state text not null default 'pending' check (state in ('pending', 'ready', 'none', 'failed')),
  -- Names the kind of the file, such as pdf. Null means that the kind is unknown.
  kind text check (length(kind) <= 20),
  -- Tells why the reading of the file failed.
  reason text check (length(reason) <= 40),
  content text,
  -- Counts the characters (code points) of the content.
  chars int not null default 0 check (chars >= 0),
  -- Lists the kinds of words that the extracted text leaves out.
  omitted text[] not null default '{}',
  -- Counts the runs of the reading job that took the row. A run may read the file for two minutes, and then another run
  -- may take the row. After three runs, the file counts as unreadable.
  tries smallint not null default 0,
  claimed_at timestamptz(3),
  read_at timestamptz(3),
  primary key (message_row, attachment_id)
);
comment on table attachment_texts is 'The text of attachments of received messages, and what is still to be read.';
create index attachment_texts_pending on attachment_texts (project_id, message_row) where state = 'pending';

create index attachment_texts_ready on attachment_texts (project_id, message_row) where state = 'ready';

create table attachment_reading (
  project_id text primary key,
  day date not null,
  bytes bigint not null default 0,
  cpu_ms bigint not null default 0
);
comment on table attachment_reading is 'What reading attachments has cost a project on a day (UTC).';

alter table project_limits
  add column daily_text_bytes bigint,
  add column daily_text_seconds bigint;
alter table project_limits
  add constraint project_limits_daily_text_bytes_check check (daily_text_bytes >= 0) not valid,
  add constraint project_limits_daily_text_seconds_check check (daily_text_seconds >= 0) not valid;
