-- online: each statement runs alone, outside a transaction, and may run twice
-- The index finds the payments that an address has made since its last known balance, even in blocks that are not
-- final.
drop index concurrently if exists purchases_spent_block;
create index concurrently purchases_spent_block on purchases (payer, block_number) where money = 'spent';
