-- This migration adds the mail that a mail service delivers over HTTP, and the secrets of single domains for this
-- delivery.

-- Describes the mail service that delivered the mail over HTTP as `{"name": …, "spf": …}`, with its SPF result. Null
-- means that the mail came by SMTP.
alter table inbound_mails add column provider jsonb;

create table inbound_secrets (
  domain text not null check (length(domain) <= 253),
  version int not null check (version > 0),
  created_at timestamptz(3) not null default clock_timestamp(),
  -- Null means that the secret is valid until it is revoked.
  expires_at timestamptz(3),
  primary key (domain, version)
);
comment on table inbound_secrets is 'Secrets of domains for mail over HTTP. A secret follows from INBOUND_SECRETS and its version: no row holds it.';
