-- Mail domains beside MAIL_DOMAIN. A domain is unusable until its DNS proves the ownership.
create table mail_domains (
  domain text primary key,
  row bigint generated always as identity unique,
  -- The token in the ownership TXT record; a domain that is added again gets a new one.
  token text not null,
  -- The key of the required DKIM record.
  dkim_selector text not null,
  dkim_record text not null,
  status text not null default 'pending' check (status in ('pending', 'verified', 'failed')),
  -- The findings of the last check, by purpose: {"mx": {"status": …, "detail": …}, …}
  findings jsonb not null default '{}',
  created_at timestamptz(3) not null default clock_timestamp(),
  checked_at timestamptz(3),
  verified_at timestamptz(3),
  -- The first of the consecutive failed checks; for a pending domain its creation.
  wanting_since timestamptz(3) default clock_timestamp()
);
create index mail_domains_listing on mail_domains (created_at desc, row desc);
