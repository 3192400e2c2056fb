-- online: built while payments are claimed
-- The index lets only one payment of a payer have a given name (payment identifier). If a name were unique across
-- payers, a stranger could take the names that another payer is about to use.
drop index concurrently if exists payments_payer_identifier;
create unique index concurrently payments_payer_identifier on payments (project_id, payment_identifier, lower(payer))
  where payment_identifier is not null and state <> 'failed';
drop index concurrently if exists payments_identifier;
