-- online: an index for the search for accepted mails whose parse job is lost.
create index concurrently if not exists inbound_mails_accepted on inbound_mails (id) where state = 'accepted';
