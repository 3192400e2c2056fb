-- Before this migration, a client could use the idempotency key `draft:ID` and so prevent the sending of a draft. The
-- keys of drafts now hold a space, which no client can send. The hash tells the keys of drafts from the keys of
-- clients.
update idempotency_keys set key = 'draft ' || substr(key, 7)
where operation = 'send' and key like 'draft:%'
  and request_hash = sha256(convert_to('["draft","' || substr(key, 7) || '"]', 'UTF8'));
