-- online: purchases are written meanwhile.
-- Each acceptance sums the kept contents of its project. Without this index it read those of every project.
drop index concurrently if exists purchases_kept;
create index concurrently purchases_kept on purchases (project_id) where key_id is not null;
