-- A send intent (an API request to send a mail) now locks the quota of its project before the quota is read, so the
-- check holds for every batch.
comment on table send_quotas is 'Recipients a project has written to on a UTC day. Send intents lock the row before they read it. The row is stored before the first send of a project, because a row that is not there cannot be locked.';
