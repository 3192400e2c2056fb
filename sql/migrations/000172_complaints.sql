-- This migration adds the complaints of recipients, and the ids that relays give to sent copies.

alter table outbound_recipients add column relay_id text;
comment on column outbound_recipients.relay_id is 'The id of the copy in the 250 answer of the relay: its reports name it.';
alter table outbound_recipients add column complained_at timestamptz(3);

alter table suppressions drop constraint suppressions_reason_check;
alter table suppressions add constraint suppressions_reason_check
  check (reason in ('bounce', 'rejection', 'complaint')) not valid;
