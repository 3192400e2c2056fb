-- Terminology
--   bounds       allowed hosts, methods and paths of a use, and the placement of the secret in its request
--   placement    the places of a request where the secret may stand

-- These columns hold the bounds of a version in addition to its allowed_hosts. Null means the default: all methods, all
-- paths, and the placement of the credential's type.
alter table credential_versions add column allowed_methods text[];
alter table credential_versions add column allowed_paths text[];
alter table credential_versions add column placement text[];

-- Tells whether the owner has set the bounds of the current version in the console. If so, no key may replace them by
-- wider bounds.
alter table credentials add column bounded_by_owner boolean not null default false;
