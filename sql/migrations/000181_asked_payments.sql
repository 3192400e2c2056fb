-- A payment may also wait for the approval of its owner, as a mail may.
alter table approvals drop constraint approvals_kind_check;
alter table approvals add constraint approvals_kind_check check (kind in ('mail', 'payment')) not valid;

-- These columns hold the reason why the service asks the owner, and the SHA-256 of the payment terms that the owner
-- sees.
alter table purchases add column asked_for text, add column asked_hash bytea;
