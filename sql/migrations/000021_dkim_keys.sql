-- Holds the DKIM keys of mail domains. DNS holds the public key under the name of the selector.
create table dkim_keys (
  row bigint generated always as identity primary key,
  domain text not null,
  selector text not null,
  -- Holds the text of the DNS record: v=DKIM1; k=rsa; p=…
  record text not null,
  -- These columns hold the private key, which shared/vault/envelope.ts has encrypted.
  key_id text not null,
  wrapped_key bytea not null,
  ciphertext bytea not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  unique (domain, selector)
);
create index dkim_keys_newest on dkim_keys (domain, row desc);
create index dkim_keys_key on dkim_keys (key_id);
