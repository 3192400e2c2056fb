-- The id of a document is a hash of its URL. With a second unique key, one of two concurrent inserts of the same document
-- can fail, because `on conflict (id)` does not cover the key of the URL.
alter table oauth_client_documents drop constraint oauth_client_documents_url_key;
