-- The service compares resources with their unreserved characters decoded and the other codes in upper case (RFC 3986
-- §6.2.2), so that `/%78` and `/x` are one resource. This migration gives earlier endpoints, and payments that are not
-- settled yet, the new keys. Of several endpoints of one project with equal keys, the one with the new key or the oldest
-- one counts.
create function pg_temp.normal_key(key text) returns text language sql immutable as $$
  select string_agg(
    case when part !~ '^%..$' then part when char ~ '^[A-Za-z0-9._~-]$' then char else upper(part) end, '' order by n)
  from regexp_matches(key, '%[0-9A-Fa-f]{2}|.', 'g') with ordinality t (found, n)
    cross join lateral (select found[1] as part) p
    cross join lateral (
      -- The function decodes only the codes %20 to %7F, because chr(0) is an error, and only visible ASCII characters
      -- may stand without percent-encoding.
      select case when part ~ '^%[2-7]' then chr(('x' || substr(part, 2))::bit(8)::int) end as char) c
$$;
update seller_endpoints e set match_key = k.key
from (
  select distinct on (project_id, pg_temp.normal_key(match_key)) id, pg_temp.normal_key(match_key) as key
  from seller_endpoints where deleted_at is null and match_key like '%\%%'
  order by project_id, pg_temp.normal_key(match_key), match_key = pg_temp.normal_key(match_key) desc, "row") k
where e.id = k.id and e.match_key <> k.key and not exists (
  select from seller_endpoints o
  where o.project_id = e.project_id and o.match_key = k.key and o.deleted_at is null);
update payments set match_key = pg_temp.normal_key(match_key)
where state = 'verified' and match_key like '%\%%' and match_key <> pg_temp.normal_key(match_key);
drop function pg_temp.normal_key(text);
