-- Terminology
--   suppression   an address that a project's mail does not go to any more, because it does not exist or takes none

create table suppressions (
  row bigint generated always as identity unique,
  project_id text not null references projects on delete cascade,
  -- In lower case.
  address text not null,
  -- bounce: a delivery status notification said so; rejection: the other side did, when we wanted to deliver.
  reason text not null check (reason in ('bounce', 'rejection')),
  detail text,
  -- The message that it came of.
  message_id text,
  created_at timestamptz(3) not null default clock_timestamp(),
  primary key (project_id, address)
);
create index suppressions_listing on suppressions (project_id, created_at desc, row desc);
