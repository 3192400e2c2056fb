-- A payment may wait for its owner, as a mail may.
alter table approvals drop constraint approvals_kind_check;
alter table approvals add constraint approvals_kind_check check (kind in ('mail', 'payment')) not valid;

-- Why the owner is asked, and SHA-256 of the terms that the owner sees.
alter table purchases add column asked_for text, add column asked_hash bytea;
