-- online: each statement runs alone, outside a transaction, and may run twice
-- What an address has paid since its last balance, final or not.
drop index concurrently if exists purchases_spent_block;
create index concurrently purchases_spent_block on purchases (payer, block_number) where money = 'spent';
