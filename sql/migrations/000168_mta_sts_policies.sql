-- Holds the MTA-STS policies of domains to which the service sends mail (RFC 8461 §3.3). A policy applies until it
-- expires, even if DNS or the web server of the domain says something else meanwhile.
create table mta_sts_policies (
  domain text primary key,
  -- Holds the id in the TXT record for which the service fetched the policy.
  policy_id text not null,
  mode text not null check (mode in ('enforce', 'testing', 'none')),
  mx text[] not null,
  expires_at timestamp(3) with time zone not null
);
create index mta_sts_policies_expiry on mta_sts_policies (expires_at);
comment on table mta_sts_policies is 'MTA-STS policies of domains that mail is sent to, until they expire (RFC 8461).';
