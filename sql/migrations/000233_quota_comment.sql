-- A send intent now locks the quota of its project before the quota is read.
comment on table send_quotas is 'Recipients a project has written to on a UTC day. Send intents lock the row before they read it. The check stops a batch that found no row to lock: the batch runs again and finds the row of the other batch.';
