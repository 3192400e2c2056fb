-- online: the index in which the projects take turns replaces this index, also for workers of the version before.
drop index concurrently if exists purchases_to_cancel;
