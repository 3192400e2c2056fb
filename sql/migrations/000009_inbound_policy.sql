-- What checking the sender of a received message gave (RFC 8601); null on messages of before there was a check.
alter table messages add column authentication jsonb;

-- Whom an inbox hears and writes to. `value` is an address or `*@domain`, in lower case.
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
