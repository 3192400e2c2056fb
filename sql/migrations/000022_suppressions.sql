-- Holds the suppressions: addresses to which a project must not send mail any more, because they do not exist or accept
-- no mail.
create table suppressions (
  row bigint generated always as identity unique,
  project_id text not null references projects on delete cascade,
  -- Holds the address in lower case.
  address text not null,
  -- The reason `bounce` means that a delivery status notification came back (RFC 3464). The reason `rejection` means
  -- that the other mail host refused the recipient at the delivery.
  reason text not null check (reason in ('bounce', 'rejection')),
  detail text,
  -- Holds the id of the message that caused the suppression.
  message_id text,
  created_at timestamptz(3) not null default clock_timestamp(),
  primary key (project_id, address)
);
create index suppressions_listing on suppressions (project_id, created_at desc, row desc);
