-- online: purchases are written meanwhile.
-- When the service accepts a purchase, it sums the stored contents of the project. Without this index, the sum would
-- read the contents of every project.
drop index concurrently if exists purchases_kept;
create index concurrently purchases_kept on purchases (project_id) where key_id is not null;
