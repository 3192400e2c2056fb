-- Holds the time of the project's own answer (DTSTAMP, RFC 5545 §3.8.7.2). Answers that wait for approval may be sent
-- in any order, so an older answer must not replace a newer one.
alter table calendar_events add column answer_stamp timestamptz;
