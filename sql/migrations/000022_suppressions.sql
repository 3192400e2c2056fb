-- Suppressions: addresses that a project must not send to any more, because they do not exist or accept no mail.
create table suppressions (
  row bigint generated always as identity unique,
  project_id text not null references projects on delete cascade,
  -- In lower case.
  address text not null,
  -- bounce: a delivery status notification (RFC 3464). rejection: the other host's answer at delivery.
  reason text not null check (reason in ('bounce', 'rejection')),
  detail text,
  -- The message that caused it.
  message_id text,
  created_at timestamptz(3) not null default clock_timestamp(),
  primary key (project_id, address)
);
create index suppressions_listing on suppressions (project_id, created_at desc, row desc);
