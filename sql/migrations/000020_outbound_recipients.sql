-- Each recipient has a separate schedule of attempts, because a recipient with an unreachable server must not hurry or
-- delay the others.
alter table outbound_recipients
  -- Counts the delivery attempts for this recipient.
  add column attempts integer not null default 0,
  add column next_attempt_at timestamptz(3) not null default clock_timestamp(),
  drop constraint outbound_recipients_state_check,
  -- The state `bounced` means that the mail was sent and then returned by a delivery status notification (RFC 3464).
  add constraint outbound_recipients_state_check
    check (state in ('queued', 'sent', 'deferred', 'failed', 'bounced'));

-- Unfinished outbound mails keep the time of their next attempt.
update outbound_recipients r set attempts = o.attempt, next_attempt_at = o.next_attempt_at
from outbound_mails o where o.message_row = r.message_row and o.state <> 'done';
