-- Holds the time from which nobody needs the event any more: its end, or the time at which it left the calendar. The
-- service deletes the event some time later, if its message is deleted too.
alter table calendar_events add column over_at timestamptz not null default 'infinity';
update calendar_events e set over_at = case
  when instance > '-infinity' then
    greatest(instance, coalesce((invite #>> '{end,at}')::timestamptz, updated_at)) + interval '546 days'
  when status = 'cancelled' or answer not in ('accepted', 'tentative') then updated_at
  when source is null then coalesce((invite #>> '{end,at}')::timestamptz, updated_at)
  when expand_at is null and not exists (select from calendar_instances i where i.event_row = e.row)
    then clock_timestamp()
  else 'infinity' end;

-- Holds the time from which the service checks whether the calendar still has the event.
alter table own_events add column over_at timestamptz not null default now() + interval '760 days';
comment on table own_events is 'The events that a project organizes, each with its last SEQUENCE: they are stored together with their mail.';
