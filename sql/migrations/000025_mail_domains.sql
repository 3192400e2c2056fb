-- Terminology
--   domain   a mail domain beside MAIL_DOMAIN; it gives nothing until DNS shows that whoever claims it holds it

create table mail_domains (
  domain text primary key,
  row bigint generated always as identity unique,
  -- What the TXT record of ownership must hold; a domain that is added again gets another.
  token text not null,
  -- Of the key whose record is asked for.
  dkim_selector text not null,
  dkim_record text not null,
  status text not null default 'pending' check (status in ('pending', 'verified', 'failed')),
  -- What the last check found, by purpose: {"mx": {"status": …, "detail": …}, …}
  findings jsonb not null default '{}',
  created_at timestamptz(3) not null default clock_timestamp(),
  checked_at timestamptz(3),
  verified_at timestamptz(3),
  -- Since when checks have found it wanting, for pending ones since it was added.
  wanting_since timestamptz(3) default clock_timestamp()
);
create index mail_domains_listing on mail_domains (created_at desc, row desc);
