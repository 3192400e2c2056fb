-- An erasure now also removes the mail address of the project's approver. This migration removes the address from the
-- projects that were erased before.
update projects set approver_email = null where erased_at is not null and approver_email is not null;
