-- The id of a document is a hash of its URL, so the unique key of the URL is not needed. The clause `on conflict (id)`
-- does not cover the key of the URL. Therefore one of two concurrent inserts of the same document could fail.
alter table oauth_client_documents drop constraint oauth_client_documents_url_key;
