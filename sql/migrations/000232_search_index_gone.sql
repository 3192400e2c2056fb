-- online: a search of an older version reads the whole inbox from here on.
drop index concurrently if exists messages_search;
