-- online: each statement runs alone, outside a transaction, and may run twice
-- The index lists the payments of a purse in the order in which the chain showed them, for the account book.
drop index concurrently if exists purchases_spent;
create index concurrently purchases_spent on purchases (project_id, spent_at, row) where money = 'spent';
drop index concurrently if exists hand_refunds_spent;
create index concurrently hand_refunds_spent on hand_refunds (project_id, spent_at, row) where state = 'spent';
