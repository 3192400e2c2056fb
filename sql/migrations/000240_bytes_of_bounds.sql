-- Holds the number of bytes of the hosts, methods, paths and placement of a version. With this number, the list of
-- credentials ends after 8 MB of metadata and bounds, but need not read all bounds to find their lengths.
alter table credential_versions add column bounds_bytes integer default 0 not null;
update credential_versions set bounds_bytes =
  coalesce(octet_length(array_to_string(allowed_hosts, '')), 0)
  + coalesce(octet_length(array_to_string(allowed_methods, '')), 0)
  + coalesce(octet_length(array_to_string(allowed_paths, '')), 0)
  + coalesce(octet_length(array_to_string(placement, '')), 0)
where coalesce(allowed_hosts, allowed_methods, allowed_paths, placement) is not null;
