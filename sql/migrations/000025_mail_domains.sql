-- Holds the mail domains in addition to MAIL_DOMAIN. A domain is unusable until its DNS records prove the ownership.
create table mail_domains (
  domain text primary key,
  row bigint generated always as identity unique,
  -- Holds the token in the TXT record that proves the ownership. A domain that is added again gets a new token.
  token text not null,
  -- Holds the selector of the DKIM key whose DNS record is required.
  dkim_selector text not null,
  dkim_record text not null,
  status text not null default 'pending' check (status in ('pending', 'verified', 'failed')),
  -- Holds the findings of the last check by their purpose: {"mx": {"status": …, "detail": …}, …}
  findings jsonb not null default '{}',
  created_at timestamptz(3) not null default clock_timestamp(),
  checked_at timestamptz(3),
  verified_at timestamptz(3),
  -- Holds the time of the first of the consecutive failed checks. For a pending domain, this is the time of its
  -- creation.
  wanting_since timestamptz(3) default clock_timestamp()
);
create index mail_domains_listing on mail_domains (created_at desc, row desc);
