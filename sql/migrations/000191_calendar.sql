-- This migration adds the invitations in mail, and the events in which a project takes part.
alter table messages add column invites jsonb;

-- Identifies the job run that reads an attachment. If this job run loses the response of the database, it finds its own
-- claim again by this id.
alter table attachment_texts add column claim uuid;

create table calendar_events (
  row bigint generated always as identity primary key,
  project_id text not null references projects,
  uid_hash bytea not null check (octet_length(uid_hash) = 32),
  -- Holds the organizer's address in lower case. An empty text means that the event names no organizer. Events with
  -- different organizers are different events.
  organizer text not null check (length(organizer) <= 320),
  -- Holds the original start of one instance of a series (RECURRENCE-ID). The value -infinity stands for the event
  -- itself.
  instance timestamptz not null default '-infinity',
  sequence int not null check (sequence >= 0),
  stamp timestamptz not null,
  -- Tells whether the mail about the event is proven to come from the organizer.
  is_proven boolean not null,
  -- Tells whether the project is the organizer.
  is_own boolean not null,
  status text not null check (status in ('confirmed', 'tentative', 'cancelled')),
  -- Holds the project's own answer to the invitation.
  answer text not null default 'needs-action' check (answer in ('needs-action', 'accepted', 'declined', 'tentative')),
  invite jsonb not null,
  -- Holds the recurrence rule with its time zones as a calendar file. Null means that the event does not recur.
  source text check (length(source) <= 100000),
  -- Holds the time from which a job must compute the instances. Null means that the instances are computed.
  expand_at timestamptz,
  expand_tries smallint not null default 0,
  -- Identifies the job run that computes the instances. If this job run loses the response of the database, it finds
  -- its own claim again by this id.
  expand_claim uuid,
  -- Names the message that announced the event. Null means that this message is deleted.
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
  -- Holds the start as the participants of the event see it: a date, or a local time without its zone.
  local text not null check (length(local) <= 30),
  primary key (event_row, starts_at)
);
comment on table calendar_instances is 'When the events take place that a project organizes, or has accepted or tentatively accepted.';
create index calendar_instances_project on calendar_instances (project_id, ends_at);

create table calendar_answers (
  event_row bigint not null references calendar_events on delete cascade,
  -- Holds the same value as the column of this name in calendar_events.
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
  -- Holds the event as the project last announced it.
  event jsonb not null,
  primary key (project_id, uid_hash)
);
comment on table own_events is 'The events that a project organizes, each with its last SEQUENCE: they are noted before their mail is accepted.';
