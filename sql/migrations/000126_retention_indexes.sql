-- online: each statement runs alone, outside a transaction, and may run twice
-- Each of these indexes holds the rows that the service may remove by age, ordered by project and age. The other
-- retention classes already have such an index for their lists.
drop index concurrently if exists messages_raw_age;
create index concurrently messages_raw_age on messages (project_id, created_at) where raw_id is not null;
drop index concurrently if exists inbound_mails_ended;
create index concurrently inbound_mails_ended on inbound_mails (project_id, received_at)
  where state in ('retransmission', 'discarded');
drop index concurrently if exists idempotency_keys_project_age;
create index concurrently idempotency_keys_project_age on idempotency_keys (project_id, created_at);
-- The migration drops the old index. If most keys belong to one project, PostgreSQL's planner would read the old index
-- for every project.
drop index concurrently if exists idempotency_keys_age;
drop index concurrently if exists payments_detailed;
create index concurrently payments_detailed on payments (project_id, created_at) where details_removed_at is null;
drop index concurrently if exists projects_unerased;
create index concurrently projects_unerased on projects (deleted_at) where deleted_at is not null and erased_at is null;
