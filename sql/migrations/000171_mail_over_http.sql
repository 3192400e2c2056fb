-- Mail that a mail service hands over by HTTP, and the secrets of single domains for it.

-- Null: it came by SMTP. Else `{"name": …, "spf": …}`: who handed it over, and what that service says about SPF.
alter table inbound_mails add column provider jsonb;

create table inbound_secrets (
  domain text not null check (length(domain) <= 253),
  version int not null check (version > 0),
  created_at timestamptz(3) not null default clock_timestamp(),
  -- Null: it is valid until it is revoked.
  expires_at timestamptz(3),
  primary key (domain, version)
);
comment on table inbound_secrets is 'Secrets of domains for mail over HTTP. A secret follows from INBOUND_SECRETS and its version: no row holds it.';
