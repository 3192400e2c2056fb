-- Holds the results of the sender authentication of a received message (RFC 8601). Null means that a version without
-- this check received the message.
alter table messages add column authentication jsonb;

-- Holds the email rules, which allow or block senders and recipients. The column `value` holds an address or
-- `*@domain`, in lower case.
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
