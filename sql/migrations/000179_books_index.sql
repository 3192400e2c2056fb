-- online: each statement runs alone, outside a transaction, and may run twice
-- The index lists the account book of a project, oldest entry first.
drop index concurrently if exists payments_books;
create index concurrently payments_books on payments (project_id, settled_at, row) where state = 'settled';
