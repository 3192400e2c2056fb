-- Holds the people who sign in to the console. Each person has one role.

create table people (
  id text primary key,
  -- Holds the email address in lower case. Null means that the first operator has not set an address.
  email text unique check (email = lower(email) and length(email) <= 320),
  name text not null check (length(name) between 1 and 100),
  role text not null check (role in ('operator', 'owner', 'viewer')),
  created_at timestamptz(3) not null default clock_timestamp(),
  signed_in_at timestamptz(3),
  -- These columns identify the person's account at the company's identity provider by issuer and subject, and never by
  -- the email address alone.
  oidc_issuer text check (length(oidc_issuer) <= 500),
  oidc_subject text check (length(oidc_subject) <= 255),
  unique (oidc_issuer, oidc_subject),
  check ((oidc_issuer is null) = (oidc_subject is null))
);
comment on table people is 'People who sign in to the console. Each has one role.';

-- The first operator is whoever can run commands on the machine of the service.
insert into people (id, name, role) values ('per_000000000000000000000000', 'First operator', 'operator');

create table person_projects (
  person_id text not null references people (id) on delete cascade,
  project_id text not null references projects (id) on delete cascade,
  primary key (person_id, project_id)
);
create index person_projects_project on person_projects (project_id);
comment on table person_projects is 'The projects that an owner or a viewer sees.';

-- The default is the first operator, because an earlier release that still runs signs in only this person.
alter table console_links
  add column person_id text not null default 'per_000000000000000000000000',
  -- Holds the hash of the secret of the browser that requested the link. Null means that the link was printed on the
  -- machine of the service.
  add column browser_hash bytea;
alter table console_links add constraint console_links_person
  foreign key (person_id) references people (id) on delete cascade not valid;

alter table console_sessions
  add column person_id text not null default 'per_000000000000000000000000',
  add column method text not null default 'link',
  add column agent text;
alter table console_sessions add constraint console_sessions_person
  foreign key (person_id) references people (id) on delete cascade not valid;
alter table console_sessions add constraint console_sessions_method
  check (method in ('link', 'mail', 'passkey', 'company') and length(agent) <= 300) not valid;

alter table oauth_grants add column person_id text not null default 'per_000000000000000000000000';
alter table oauth_grants add constraint oauth_grants_person
  foreign key (person_id) references people (id) on delete cascade not valid;

create table sign_in_mails (
  id text primary key,
  email text not null check (length(email) <= 320),
  browser_hash bytea not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  expires_at timestamptz(3) not null,
  -- Holds the time at which the mail was sent or given up, or at which the service found that nobody has the address.
  done_at timestamptz(3)
);
create index sign_in_mails_age on sign_in_mails (created_at);
create index sign_in_mails_email on sign_in_mails (email, created_at);
comment on table sign_in_mails is 'Addresses that asked for a sign-in link. Most rows may name nobody: the worker alone looks.';

-- Holds the time at which a notification was sent to this person, or was given up.
alter table approval_links add column notified_at timestamptz(3);

create table passkeys (
  -- Holds the credential id of the authenticator in base64url (WebAuthn §5.8.3: at most 1,023 bytes).
  credential_id text primary key check (length(credential_id) <= 1364),
  person_id text not null references people (id) on delete cascade,
  -- Holds the public key as a COSE_Key.
  public_key bytea not null check (length(public_key) <= 4096),
  counter bigint not null,
  transports text[] not null default '{}',
  name text not null check (length(name) between 1 and 100),
  created_at timestamptz(3) not null default clock_timestamp(),
  used_at timestamptz(3)
);
create index passkeys_person on passkeys (person_id);
comment on table passkeys is 'Public keys of passkeys (WebAuthn) that sign a person in.';

create table passkey_challenges (
  challenge_hash bytea primary key,
  browser_hash bytea not null,
  -- Names the person who adds a passkey. Null means that somebody signs in.
  person_id text references people (id) on delete cascade,
  expires_at timestamptz(3) not null
);
create index passkey_challenges_expiry on passkey_challenges (expires_at);
create index passkey_challenges_person on passkey_challenges (person_id);
comment on table passkey_challenges is 'Challenges that wait for a passkey, five minutes at most. Each is used once.';

create table company_sign_ins (
  id text primary key,
  browser_hash bytea not null,
  -- Names the person who connects an account. Null means that somebody signs in.
  person_id text references people (id) on delete cascade,
  -- In the state `asked`, a worker reads the settings of the identity provider. In the state `open`, the browser is at
  -- the provider. In the state `answered`, a worker exchanges the authorization code.
  state text not null default 'asked' check (state in ('asked', 'open', 'answered', 'done', 'failed')),
  -- Holds the URL of the identity provider's sign-in page.
  url text check (length(url) <= 4000),
  -- Holds the nonce (OpenID Connect Core §3.1.2.1) and the verifier (RFC 7636). The state in the provider's response is
  -- the hash of the id.
  nonce text,
  verifier text,
  -- Holds the query of the identity provider's response.
  answer text check (length(answer) <= 8000),
  fault text check (length(fault) <= 300),
  issuer text check (length(issuer) <= 500),
  subject text check (length(subject) <= 255),
  expires_at timestamptz(3) not null
);
create index company_sign_ins_expiry on company_sign_ins (expires_at);
create index company_sign_ins_person on company_sign_ins (person_id);
comment on table company_sign_ins is 'Sign-ins at the company''s identity provider (OpenID Connect) that are under way.';
