-- MTA-STS policies of domains that we send to (RFC 8461 §3.3): they hold until they expire, whatever DNS and web say meanwhile.
create table mta_sts_policies (
  domain text primary key,
  -- The id of the TXT record that the policy was fetched for.
  policy_id text not null,
  mode text not null check (mode in ('enforce', 'testing', 'none')),
  mx text[] not null,
  expires_at timestamp(3) with time zone not null
);
create index mta_sts_policies_expiry on mta_sts_policies (expires_at);
comment on table mta_sts_policies is 'MTA-STS policies of domains that mail is sent to, until they expire (RFC 8461).';
