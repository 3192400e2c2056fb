-- online: an index for the cancellations of purses, in which the projects take turns.
create index concurrently if not exists purchases_to_cancel_in_turn on purchases (project_id, cancel_sent_at nulls first)
where money = 'open' and cancel_signature is not null;
