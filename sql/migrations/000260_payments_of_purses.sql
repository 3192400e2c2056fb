-- online: an index for the list of a purse's payments. The index of all purchases also holds the quotes, which are free.
create index concurrently if not exists purchases_payments on purchases (project_id, created_at desc, row desc)
where kind = 'payment';
