-- The path of a purchase now has its normal form (shared/http/normalUrl.ts), so that another spelling of a path does not
-- evade the check of risen prices. This migration normalises the earlier paths, which the service compares with new ones.
-- Dot segments stay, because no honest caller wrote them.
create function pg_temp.normal_path(path text) returns text language sql immutable as $$
  select string_agg(
    case
      when part like '{{%' then regexp_replace(part, '\s', '', 'g')
      when part ~ '^%..$' and char ~ '^[A-Za-z0-9._~!$&''()*+,;=:@-]$' then char
      when part ~ '^%..$' then upper(part)
      when part ~ '^[A-Za-z0-9._~!$&''()*+,;=:@/-]$' then part
      else upper(regexp_replace(encode(convert_to(part, 'UTF8'), 'hex'), '(..)', '%\1', 'g'))
    end, '' order by n)
  from regexp_matches(
      replace(path, '\', '/'), '\{\{\s*[A-Za-z][A-Za-z0-9_-]*\s*\}\}|%[0-9A-Fa-f]{2}|.', 'g') with ordinality t (found, n)
    cross join lateral (select found[1] as part) p
    cross join lateral (
      -- The function decodes only the codes %20 to %7F, because chr(0) is an error, and only visible ASCII characters
      -- may stand without percent-encoding.
      select case when part ~ '^%[2-7]' then chr(('x' || substr(part, 2))::bit(8)::int) end as char) c
$$;
update purchases set path = pg_temp.normal_path(path)
where path ~ '[^A-Za-z0-9._~!$&''()*+,;=:@/-]' and path <> pg_temp.normal_path(path)
  -- The update skips longer paths, because an entry of the index purchases_resource has at most 2,704 bytes.
  and octet_length(pg_temp.normal_path(path)) < 2000;
drop function pg_temp.normal_path(text);
