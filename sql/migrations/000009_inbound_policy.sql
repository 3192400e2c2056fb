-- The sender authentication of a received message (RFC 8601); null: received by a version without the check.
alter table messages add column authentication jsonb;

-- Email rules: allowed and blocked senders and recipients. `value` is an address or `*@domain`, in lower case.
create table email_rules (
  id text primary key,
  project_id text not null references projects on delete cascade,
  type text not null check (type in ('ALLOW', 'BLOCK')),
  scope text not null check (scope in ('RECEIVE', 'SEND', 'REPLY')),
  value text not null,
  row bigint generated always as identity unique,
  created_at timestamptz(3) not null default clock_timestamp(),
  unique (project_id, scope, value)
);
