-- online: each statement runs alone, outside a transaction, and may run twice
-- What a purse has paid, in the order of the chain's answers, for the books.
drop index concurrently if exists purchases_spent;
create index concurrently purchases_spent on purchases (project_id, spent_at, row) where money = 'spent';
drop index concurrently if exists hand_refunds_spent;
create index concurrently hand_refunds_spent on hand_refunds (project_id, spent_at, row) where state = 'spent';
