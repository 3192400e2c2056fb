-- online: the index finds the quotes of prices that ended long ago.
create index concurrently if not exists purchases_quotes on purchases (ended_at) where kind = 'quote';
