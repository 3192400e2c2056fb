-- Terminology
--   DKIM key   a key that signs the mail of a domain; its public half stands in DNS under its selector

create table dkim_keys (
  row bigint generated always as identity primary key,
  domain text not null,
  selector text not null,
  -- What stands in DNS: v=DKIM1; k=rsa; p=…
  record text not null,
  -- The private half, as shared/envelope.ts seals it.
  key_id text not null,
  wrapped_key bytea not null,
  ciphertext bytea not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  unique (domain, selector)
);
create index dkim_keys_newest on dkim_keys (domain, row desc);
create index dkim_keys_key on dkim_keys (key_id);
