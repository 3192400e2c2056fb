-- online: an index for the transfers out of purses, in which the projects take turns.
create index concurrently if not exists purchases_to_send_in_turn on purchases (project_id, transfer_sent_at nulls first)
where money = 'open' and transfer_signature is not null;
