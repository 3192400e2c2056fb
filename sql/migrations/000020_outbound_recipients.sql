-- Each recipient has a schedule of its own: one whose server is away must not hurry or hold up the others.
alter table outbound_recipients
  -- Attempts that were made for this recipient.
  add column attempts integer not null default 0,
  add column next_attempt_at timestamptz(3) not null default clock_timestamp(),
  drop constraint outbound_recipients_state_check,
  -- bounced: handed over, and then returned by a delivery status notification (RFC 3464).
  add constraint outbound_recipients_state_check
    check (state in ('queued', 'sent', 'deferred', 'failed', 'bounced'));

-- What was under way keeps its place in the schedule.
update outbound_recipients r set attempts = o.attempt, next_attempt_at = o.next_attempt_at
from outbound_mails o where o.message_row = r.message_row and o.state <> 'done';
