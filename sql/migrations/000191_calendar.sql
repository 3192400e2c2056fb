-- Invitations by mail, and the events that a project takes part in.
alter table messages add column invites jsonb;

-- The run that reads an attachment. After a lost answer it finds its own claim again.
alter table attachment_texts add column claim uuid;

create table calendar_events (
  row bigint generated always as identity primary key,
  project_id text not null references projects,
  uid_hash bytea not null check (octet_length(uid_hash) = 32),
  -- The organizer's address in lower case; empty: the event names none. Another organizer's event is another event.
  organizer text not null check (length(organizer) <= 320),
  -- The first start of one instance of a series (RECURRENCE-ID); -infinity: the event itself.
  instance timestamptz not null default '-infinity',
  sequence int not null check (sequence >= 0),
  stamp timestamptz not null,
  -- The mail was authenticated as the organizer's.
  is_proven boolean not null,
  -- The project is the organizer.
  is_own boolean not null,
  status text not null check (status in ('confirmed', 'tentative', 'cancelled')),
  -- The project's own answer.
  answer text not null default 'needs-action' check (answer in ('needs-action', 'accepted', 'declined', 'tentative')),
  invite jsonb not null,
  -- The rule with its zones, as a calendar file; null: it does not recur.
  source text check (length(source) <= 100000),
  -- When its instances are to be made; null: they are there.
  expand_at timestamptz,
  expand_tries smallint not null default 0,
  -- The run that makes them. After a lost answer it finds its own claim again.
  expand_claim uuid,
  -- The message that says so; null: it is deleted.
  message_row bigint references messages on delete set null,
  updated_at timestamptz(3) not null default clock_timestamp(),
  unique (project_id, uid_hash, organizer, instance)
);
comment on table calendar_events is 'Events of invitations by mail, each with its latest state.';
create index calendar_events_message on calendar_events (message_row) where message_row is not null;
create index calendar_events_expand on calendar_events (expand_at) where expand_at is not null;
create index calendar_events_forgotten on calendar_events (row) where message_row is null and answer = 'needs-action' and not is_own;

create table calendar_instances (
  event_row bigint not null references calendar_events on delete cascade,
  project_id text not null,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  -- The start as the event's people see it: a date, or a time without its zone.
  local text not null check (length(local) <= 30),
  primary key (event_row, starts_at)
);
comment on table calendar_instances is 'When the events take place that a project organizes, or has accepted or tentatively accepted.';
create index calendar_instances_project on calendar_instances (project_id, ends_at);

create table calendar_answers (
  event_row bigint not null references calendar_events on delete cascade,
  -- As in calendar_events.
  instance timestamptz not null default '-infinity',
  address text not null check (length(address) <= 320),
  state text not null check (state in ('needs-action', 'accepted', 'declined', 'tentative', 'delegated')),
  stamp timestamptz not null,
  comment text,
  primary key (event_row, instance, address)
);
comment on table calendar_answers is 'Answers of attendees to events that a project organizes.';

create table own_events (
  project_id text not null,
  uid_hash bytea not null check (octet_length(uid_hash) = 32),
  sequence int not null default 0 check (sequence >= 0),
  -- As it was last announced.
  event jsonb not null,
  primary key (project_id, uid_hash)
);
comment on table own_events is 'The events that a project organizes, each with its last SEQUENCE: they are noted before their mail is accepted.';
