-- online: built while mail is sent
create index concurrently if not exists outbound_recipients_relay on outbound_recipients (relay_id)
  where relay_id is not null;
alter table suppressions validate constraint suppressions_reason_check;
