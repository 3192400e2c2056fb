-- Terminology
--   bounds       allowed hosts, methods and paths of a use, and the placement of the secret in its request
--   placement    the places of a request where the secret may stand

-- The bounds of a version, beside its allowed_hosts; null: the default. Methods: all. Paths: all. Placement: by type.
alter table credential_versions add column allowed_methods text[];
alter table credential_versions add column allowed_paths text[];
alter table credential_versions add column placement text[];

-- The owner has set the bounds of the current version, in the console: no key replaces them by wider ones.
alter table credentials add column bounded_by_owner boolean not null default false;
