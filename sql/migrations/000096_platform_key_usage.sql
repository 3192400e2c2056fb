-- Requests of each platform key. Those of project keys count for their project.
create table platform_key_usage (
  key_id bigint primary key references api_keys on delete cascade,
  request_count bigint not null default 0,
  last_used_at timestamptz(3)
);
