-- online: each statement runs alone, outside a transaction, and may run twice
alter table messages validate constraint messages_delivery_status_check;
alter table outbound_mails validate constraint outbound_mails_state_check;
alter table projects validate constraint projects_send_policy_check;
