-- Counts the requests of each platform key. The requests of a project key count for its project instead.
create table platform_key_usage (
  key_id bigint primary key references api_keys on delete cascade,
  request_count bigint not null default 0,
  last_used_at timestamptz(3)
);
