-- online: the index finds the projects that a payTo address of a 402 response belongs to.
create index concurrently if not exists projects_pay_to on projects (lower(pay_to))
where deleted_at is null and pay_to is not null;
