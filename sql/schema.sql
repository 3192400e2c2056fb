-- The schema that all migrations make. `npm run schema` writes this file; a test compares it.

-- The rows of aggregate reports: mails or sessions of one source, and whether they passed.
create table aggregate_report_rows (
  report_id bigint not null,
  place integer not null,
  source text,
  count integer not null,
  is_passed boolean not null,
  result text not null,
  constraint aggregate_report_rows_count_check CHECK ((count >= 0)),
  constraint aggregate_report_rows_result_check CHECK ((length(result) <= 255)),
  constraint aggregate_report_rows_source_check CHECK ((length(source) <= 255)),
  constraint aggregate_report_rows_report_id_fkey FOREIGN KEY (report_id) REFERENCES aggregate_reports(id) ON DELETE CASCADE,
  constraint aggregate_report_rows_pkey PRIMARY KEY (report_id, place)
);

-- DMARC and TLS reports that other mail hosts sent about a domain of ours. `is_proven`: DMARC vouches for the reporter.
create table aggregate_reports (
  id bigint generated always as identity not null,
  kind text not null,
  domain text not null,
  reporter text not null,
  report_id text not null,
  begins_at timestamp(3) with time zone not null,
  ends_at timestamp(3) with time zone not null,
  is_proven boolean not null,
  received_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint aggregate_reports_domain_check CHECK ((length(domain) <= 255)),
  constraint aggregate_reports_kind_check CHECK ((kind = ANY (ARRAY['dmarc'::text, 'tls'::text]))),
  constraint aggregate_reports_report_id_check CHECK ((length(report_id) <= 255)),
  constraint aggregate_reports_reporter_check CHECK ((length(reporter) <= 255)),
  constraint aggregate_reports_pkey PRIMARY KEY (id),
  constraint aggregate_reports_kind_domain_reporter_report_id_key UNIQUE (kind, domain, reporter, report_id)
);

-- Platform and project keys. Only the hash of a key is stored.
create table api_keys (
  id bigint generated always as identity not null,
  kind text not null,
  project_id text,
  lookup_prefix text not null,
  key_hash bytea not null,
  scopes text[] default '{}'::text[] not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  revoked_at timestamp(3) with time zone,
  name text,
  constraint api_keys_check CHECK (((kind = 'project'::text) = (project_id IS NOT NULL))),
  constraint api_keys_key_hash_check CHECK ((octet_length(key_hash) = 32)),
  constraint api_keys_kind_check CHECK ((kind = ANY (ARRAY['project'::text, 'platform'::text]))),
  constraint api_keys_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint api_keys_pkey PRIMARY KEY (id)
);

-- Links of notification mails. Each decides one request once; only the hash of its token is stored.
create table approval_links (
  token_hash bytea not null,
  approval_id text not null,
  address text not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  used_at timestamp(3) with time zone,
  notified_at timestamp(3) with time zone,
  constraint approval_links_token_hash_check CHECK ((octet_length(token_hash) = 32)),
  constraint approval_links_approval_id_fkey FOREIGN KEY (approval_id) REFERENCES approvals(id) ON DELETE CASCADE,
  constraint approval_links_pkey PRIMARY KEY (token_hash)
);

-- Requests that an owner decides. `kind` names the part of the service that asks, `subject` its object: for mail, the Message-ID.
create table approvals (
  "row" bigint generated always as identity not null,
  id text not null,
  project_id text not null,
  kind text not null,
  subject text not null,
  state text default 'waiting'::text not null,
  content_hash bytea,
  requested_at timestamp(3) with time zone default clock_timestamp() not null,
  expires_at timestamp(3) with time zone not null,
  announced_at timestamp(3) with time zone,
  notified_at timestamp(3) with time zone,
  notice_attempts integer default 0 not null,
  decided_at timestamp(3) with time zone,
  decided_by text,
  reason text,
  constraint approvals_content_hash_check CHECK ((octet_length(content_hash) = 32)),
  constraint approvals_kind_check CHECK ((kind = ANY (ARRAY['mail'::text, 'payment'::text]))) NOT VALID,
  constraint approvals_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'approved'::text, 'rejected'::text, 'withdrawn'::text, 'expired'::text]))),
  constraint approvals_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint approvals_pkey PRIMARY KEY (id),
  constraint approvals_row_key UNIQUE ("row")
);

-- What reading attachments has cost a project on a day (UTC).
create table attachment_reading (
  project_id text not null,
  day date not null,
  bytes bigint default 0 not null,
  cpu_ms bigint default 0 not null,
  constraint attachment_reading_pkey PRIMARY KEY (project_id)
);

-- The text of attachments of received messages, and what is still to be read.
create table attachment_texts (
  message_row bigint not null,
  attachment_id text not null,
  project_id text not null,
  state text default 'pending'::text not null,
  kind text,
  reason text,
  content text,
  chars integer default 0 not null,
  omitted text[] default '{}'::text[] not null,
  tries smallint default 0 not null,
  claimed_at timestamp(3) with time zone,
  read_at timestamp(3) with time zone,
  claim uuid,
  constraint attachment_texts_attachment_id_check CHECK ((length(attachment_id) <= 64)),
  constraint attachment_texts_chars_check CHECK ((chars >= 0)),
  constraint attachment_texts_kind_check CHECK ((length(kind) <= 20)),
  constraint attachment_texts_reason_check CHECK ((length(reason) <= 40)),
  constraint attachment_texts_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'ready'::text, 'none'::text, 'failed'::text]))),
  constraint attachment_texts_message_row_fkey FOREIGN KEY (message_row) REFERENCES messages("row") ON DELETE CASCADE,
  constraint attachment_texts_pkey PRIMARY KEY (message_row, attachment_id)
);

-- The audit log. No foreign key to projects: reading a secret writes an entry and must not wait for the project's lock.
create table audit_log (
  "row" bigint generated always as identity not null,
  project_id text not null,
  at timestamp(3) with time zone default clock_timestamp() not null,
  action text not null,
  subject text,
  detail text,
  actor text not null,
  request_id text not null,
  outcome text not null,
  constraint audit_log_pkey PRIMARY KEY ("row")
);

-- When `bun run backup` copied this database.
create table backups (
  finished_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint backups_pkey PRIMARY KEY (finished_at)
);

-- Contents of mail in an object store. The object of a row is named by `hash`, the SHA-256 of the encrypted bytes. Without `key`, which stands here alone, the object cannot be read.
create table blobs (
  hash bytea not null,
  key bytea not null,
  size integer not null,
  content_hash bytea not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  idle_since timestamp(3) with time zone default clock_timestamp(),
  constraint blobs_content_hash_check CHECK ((octet_length(content_hash) = 32)),
  constraint blobs_hash_check CHECK ((octet_length(hash) = 32)),
  constraint blobs_key_check CHECK ((octet_length(key) = 32)),
  constraint blobs_pkey PRIMARY KEY (hash)
);

-- Answers of attendees to events that a project organizes.
create table calendar_answers (
  event_row bigint not null,
  instance timestamp with time zone default '-infinity'::timestamp with time zone not null,
  address text not null,
  state text not null,
  stamp timestamp with time zone not null,
  comment text,
  constraint calendar_answers_address_check CHECK ((length(address) <= 320)),
  constraint calendar_answers_state_check CHECK ((state = ANY (ARRAY['needs-action'::text, 'accepted'::text, 'declined'::text, 'tentative'::text, 'delegated'::text]))),
  constraint calendar_answers_event_row_fkey FOREIGN KEY (event_row) REFERENCES calendar_events("row") ON DELETE CASCADE,
  constraint calendar_answers_pkey PRIMARY KEY (event_row, instance, address)
);

-- Events of invitations by mail, each with its latest state.
create table calendar_events (
  "row" bigint generated always as identity not null,
  project_id text not null,
  uid_hash bytea not null,
  organizer text not null,
  instance timestamp with time zone default '-infinity'::timestamp with time zone not null,
  sequence integer not null,
  stamp timestamp with time zone not null,
  is_proven boolean not null,
  is_own boolean not null,
  status text not null,
  answer text default 'needs-action'::text not null,
  invite jsonb not null,
  source text,
  expand_at timestamp with time zone,
  expand_tries smallint default 0 not null,
  expand_claim uuid,
  message_row bigint,
  updated_at timestamp(3) with time zone default clock_timestamp() not null,
  answer_stamp timestamp with time zone,
  over_at timestamp with time zone default 'infinity'::timestamp with time zone not null,
  constraint calendar_events_answer_check CHECK ((answer = ANY (ARRAY['needs-action'::text, 'accepted'::text, 'declined'::text, 'tentative'::text]))),
  constraint calendar_events_organizer_check CHECK ((length(organizer) <= 320)),
  constraint calendar_events_sequence_check CHECK ((sequence >= 0)),
  constraint calendar_events_source_check CHECK ((length(source) <= 100000)),
  constraint calendar_events_status_check CHECK ((status = ANY (ARRAY['confirmed'::text, 'tentative'::text, 'cancelled'::text]))),
  constraint calendar_events_uid_hash_check CHECK ((octet_length(uid_hash) = 32)),
  constraint calendar_events_message_row_fkey FOREIGN KEY (message_row) REFERENCES messages("row") ON DELETE SET NULL,
  constraint calendar_events_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint calendar_events_pkey PRIMARY KEY ("row"),
  constraint calendar_events_project_id_uid_hash_organizer_instance_key UNIQUE (project_id, uid_hash, organizer, instance)
);

-- When the events take place that a project organizes, or has accepted or tentatively accepted.
create table calendar_instances (
  event_row bigint not null,
  project_id text not null,
  starts_at timestamp with time zone not null,
  ends_at timestamp with time zone not null,
  local text not null,
  constraint calendar_instances_local_check CHECK ((length(local) <= 30)),
  constraint calendar_instances_event_row_fkey FOREIGN KEY (event_row) REFERENCES calendar_events("row") ON DELETE CASCADE,
  constraint calendar_instances_pkey PRIMARY KEY (event_row, starts_at)
);

-- The chain head as the payment workers last saw it. The API has no RPC connection and reads this row.
create table chain_status (
  singleton boolean default true not null,
  chain_id bigint,
  network text,
  head_number bigint,
  head_hash text,
  rpc_error text,
  checked_at timestamp(3) with time zone not null,
  constraint chain_status_singleton_check CHECK (singleton),
  constraint chain_status_pkey PRIMARY KEY (singleton)
);

-- The payments of each group. A transaction of one payment names it in its own row.
create table chain_transaction_payments (
  hash text not null,
  payment_id text not null,
  constraint chain_transaction_payments_hash_fkey FOREIGN KEY (hash) REFERENCES chain_transactions(hash) ON DELETE CASCADE,
  constraint chain_transaction_payments_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(id),
  constraint chain_transaction_payments_pkey PRIMARY KEY (hash, payment_id)
);

-- The signed transactions of the gas wallets, stored before their broadcast.
create table chain_transactions (
  hash text not null,
  chain_id bigint not null,
  wallet text not null,
  nonce bigint not null,
  payment_id text,
  raw text not null,
  max_fee_wei numeric(78,0) not null,
  tip_wei numeric(78,0) not null,
  state text default 'open'::text not null,
  succeeded boolean,
  block_number bigint,
  block_hash text,
  signed_at timestamp(3) with time zone default clock_timestamp() not null,
  sent_at timestamp(3) with time zone,
  send_count integer default 0 not null,
  sent_head bigint,
  send_error text,
  gas_limit bigint,
  payer_code text,
  gas_used bigint,
  fee_wei numeric(78,0),
  constraint chain_transactions_state_check CHECK ((state = ANY (ARRAY['open'::text, 'mined'::text, 'void'::text]))),
  constraint chain_transactions_chain_id_wallet_fkey FOREIGN KEY (chain_id, wallet) REFERENCES gas_wallets(chain_id, address),
  constraint chain_transactions_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(id),
  constraint chain_transactions_pkey PRIMARY KEY (hash)
);

-- Sign-ins at the company's identity provider (OpenID Connect) that are under way.
create table company_sign_ins (
  id text not null,
  browser_hash bytea not null,
  person_id text,
  state text default 'asked'::text not null,
  url text,
  nonce text,
  verifier text,
  answer text,
  fault text,
  issuer text,
  subject text,
  expires_at timestamp(3) with time zone not null,
  network text default ''::text not null,
  constraint company_sign_ins_answer_check CHECK ((length(answer) <= 8000)),
  constraint company_sign_ins_fault_check CHECK ((length(fault) <= 300)),
  constraint company_sign_ins_issuer_check CHECK ((length(issuer) <= 500)),
  constraint company_sign_ins_network_check CHECK ((length(network) <= 50)),
  constraint company_sign_ins_state_check CHECK ((state = ANY (ARRAY['asked'::text, 'open'::text, 'answered'::text, 'done'::text, 'failed'::text]))),
  constraint company_sign_ins_subject_check CHECK ((length(subject) <= 255)),
  constraint company_sign_ins_url_check CHECK ((length(url) <= 4000)),
  constraint company_sign_ins_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE,
  constraint company_sign_ins_pkey PRIMARY KEY (id)
);

-- Sign-in links.
create table console_links (
  token_hash bytea not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  expires_at timestamp(3) with time zone not null,
  used_at timestamp(3) with time zone,
  person_id text default 'per_000000000000000000000000'::text not null,
  browser_hash bytea,
  constraint console_links_token_hash_check CHECK ((octet_length(token_hash) = 32)),
  constraint console_links_person FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE NOT VALID,
  constraint console_links_pkey PRIMARY KEY (token_hash)
);

-- Sessions of the console.
create table console_sessions (
  id text not null,
  secret_hash bytea not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  last_seen_at timestamp(3) with time zone default clock_timestamp() not null,
  expires_at timestamp(3) with time zone not null,
  person_id text default 'per_000000000000000000000000'::text not null,
  method text default 'link'::text not null,
  agent text,
  constraint console_sessions_method CHECK (((method = ANY (ARRAY['link'::text, 'mail'::text, 'passkey'::text, 'company'::text])) AND (length(agent) <= 300))) NOT VALID,
  constraint console_sessions_secret_hash_check CHECK ((octet_length(secret_hash) = 32)),
  constraint console_sessions_person FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE NOT VALID,
  constraint console_sessions_pkey PRIMARY KEY (id),
  constraint console_sessions_secret_hash_key UNIQUE (secret_hash)
);

-- The stored versions of credentials.
create table credential_versions (
  credential_row bigint not null,
  version integer not null,
  type text not null,
  metadata json not null,
  metadata_bytes integer not null,
  expires_at timestamp(3) with time zone,
  has_totp boolean not null,
  key_id text not null,
  wrapped_key bytea not null,
  ciphertext bytea not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  allowed_hosts text[],
  allowed_methods text[],
  allowed_paths text[],
  placement text[],
  bounds_bytes integer default 0 not null,
  constraint credential_versions_version_check CHECK ((version > 0)),
  constraint credential_versions_credential_row_fkey FOREIGN KEY (credential_row) REFERENCES credentials("row") ON DELETE CASCADE,
  constraint credential_versions_pkey PRIMARY KEY (credential_row, version)
);

-- The credentials of all projects, without their contents.
create table credentials (
  "row" bigint generated always as identity not null,
  id text not null,
  project_id text not null,
  name text not null,
  version integer default 0 not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  last_used_at timestamp(3) with time zone,
  last_rotated_at timestamp(3) with time zone,
  expires_at timestamp(3) with time zone,
  reveal text default 'agent'::text not null,
  bounded_by_owner boolean default false not null,
  constraint credentials_reveal_check CHECK ((reveal = ANY (ARRAY['agent'::text, 'owner'::text]))),
  constraint credentials_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint credentials_pkey PRIMARY KEY ("row"),
  constraint credentials_id_key UNIQUE (id),
  constraint credentials_project_id_name_key UNIQUE (project_id, name)
) with (fillfactor=80);

-- Objects to be removed. No row can name them any more.
create table dead_blobs (
  hash bytea not null,
  died_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint dead_blobs_pkey PRIMARY KEY (hash)
);

-- Hashes of deleted received messages: a retransmission after a lost answer must not restore them.
create table deleted_messages (
  project_id text not null,
  content_hash bytea not null,
  deleted_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint deleted_messages_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint deleted_messages_pkey PRIMARY KEY (project_id, content_hash)
);

-- The DKIM keys of mail domains. DNS holds the public key under the selector.
create table dkim_keys (
  "row" bigint generated always as identity not null,
  domain text not null,
  selector text not null,
  record text not null,
  key_id text not null,
  wrapped_key bytea not null,
  ciphertext bytea not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint dkim_keys_pkey PRIMARY KEY ("row"),
  constraint dkim_keys_domain_selector_key UNIQUE (domain, selector)
);

-- Mails that are being written. `content` is the body of send or reply, without the attachments.
create table drafts (
  "row" bigint generated always as identity not null,
  id text not null,
  project_id text not null,
  version integer default 1 not null,
  content jsonb not null,
  attachments jsonb default '[]'::jsonb not null,
  stored_bytes bigint not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  updated_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint drafts_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint drafts_pkey PRIMARY KEY (id),
  constraint drafts_row_key UNIQUE ("row")
);

-- Email rules: allowed and blocked senders and recipients. `value` is an address or `*@domain`, in lower case.
create table email_rules (
  id text not null,
  project_id text not null,
  type text not null,
  scope text not null,
  value text not null,
  "row" bigint generated always as identity not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint email_rules_scope_check CHECK ((scope = ANY (ARRAY['RECEIVE'::text, 'SEND'::text, 'REPLY'::text]))),
  constraint email_rules_type_check CHECK ((type = ANY (ARRAY['ALLOW'::text, 'BLOCK'::text]))),
  constraint email_rules_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint email_rules_pkey PRIMARY KEY (id),
  constraint email_rules_project_id_scope_value_key UNIQUE (project_id, scope, value),
  constraint email_rules_row_key UNIQUE ("row")
);

-- The last trial of each endpoint: what a buyer is asked, and on the devnet one purchase.
create table endpoint_trials (
  endpoint_id text not null,
  id text not null,
  project_id text not null,
  buy boolean not null,
  state text default 'asking'::text not null,
  method text,
  challenge json,
  header_name text,
  header_value text,
  status integer,
  body text,
  detail text,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  ended_at timestamp(3) with time zone,
  constraint endpoint_trials_body_check CHECK ((length(body) <= 16384)),
  constraint endpoint_trials_challenge_check CHECK ((length((challenge)::text) <= 40000)),
  constraint endpoint_trials_state_check CHECK ((state = ANY (ARRAY['asking'::text, 'asked'::text, 'paying'::text, 'paid'::text, 'failed'::text]))),
  constraint endpoint_trials_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES seller_endpoints(id) ON DELETE CASCADE,
  constraint endpoint_trials_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint endpoint_trials_pkey PRIMARY KEY (endpoint_id),
  constraint endpoint_trials_id_key UNIQUE (id)
);

-- The last number of each stream. A writer locks the row until its commit: numbers become visible in order.
create table event_streams (
  project_id text not null,
  last_seq bigint not null,
  constraint event_streams_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint event_streams_pkey PRIMARY KEY (project_id)
);

-- The stored events; expired ones are deleted.
create table events (
  project_id text not null,
  seq bigint not null,
  type text not null,
  data jsonb not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint events_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint events_pkey PRIMARY KEY (project_id, seq)
);

-- The next nonce of each gas wallet.
create table gas_wallets (
  chain_id bigint not null,
  address text not null,
  next_nonce bigint not null,
  constraint gas_wallets_pkey PRIMARY KEY (chain_id, address)
);

-- Refunds that sellers make by hand, each proved by one transfer on the chain.
create table hand_refunds (
  "row" bigint generated always as identity not null,
  id text not null,
  project_id text not null,
  payment_id text not null,
  idempotency_key text not null,
  request_hash bytea not null,
  created_by text not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  network text not null,
  asset text not null,
  payer text not null,
  pay_to text not null,
  amount_atomic numeric(20,0) not null,
  state text default 'expected'::text not null,
  tx_hash text,
  claimed_at timestamp(3) with time zone,
  reason text,
  log_index integer,
  block_number bigint,
  block_hash text,
  spent_at timestamp(3) with time zone,
  final_at timestamp(3) with time zone,
  receipt text,
  told_at timestamp(3) with time zone,
  constraint hand_refunds_check CHECK (((state = 'spent'::text) = (log_index IS NOT NULL))),
  constraint hand_refunds_idempotency_key_check CHECK ((length(idempotency_key) <= 255)),
  constraint hand_refunds_reason_check CHECK ((length(reason) <= 200)),
  constraint hand_refunds_state_check CHECK ((state = ANY (ARRAY['expected'::text, 'claimed'::text, 'spent'::text, 'withdrawn'::text]))),
  constraint hand_refunds_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(id),
  constraint hand_refunds_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint hand_refunds_pkey PRIMARY KEY ("row"),
  constraint hand_refunds_id_key UNIQUE (id),
  constraint hand_refunds_project_id_idempotency_key_key UNIQUE (project_id, idempotency_key),
  constraint hand_refunds_tx_hash_log_index_key UNIQUE (tx_hash, log_index)
);

-- The last reports of the doctor. `sections` holds the findings of each section that a worker has looked at.
create table health_reports (
  id text not null,
  requested_at timestamp(3) with time zone default clock_timestamp() not null,
  sections jsonb default '{}'::jsonb not null,
  constraint health_reports_id_check CHECK ((id ~ '^hlr_[0-9a-f]{24}$'::text)),
  constraint health_reports_sections_check CHECK ((jsonb_typeof(sections) = 'object'::text)),
  constraint health_reports_pkey PRIMARY KEY (id)
);

-- The idempotency keys of requests, with the stored answers.
create table idempotency_keys (
  project_id text not null,
  operation text not null,
  key text not null,
  request_hash bytea not null,
  result text,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint idempotency_keys_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint idempotency_keys_pkey PRIMARY KEY (project_id, operation, key)
);

-- The arrival of a raw mail in an inbox. `accepted` waits to be parsed; the other states are ends.
create table inbound_mails (
  id bigint generated always as identity not null,
  raw_id bigint not null,
  project_id text not null,
  envelope_from text not null,
  envelope_to text not null,
  remote_ip text,
  helo text,
  received_at timestamp(3) with time zone not null,
  state text default 'accepted'::text not null,
  message_row bigint,
  traceparent text,
  provider jsonb,
  constraint inbound_mails_state_check CHECK ((state = ANY (ARRAY['accepted'::text, 'stored'::text, 'retransmission'::text, 'discarded'::text]))),
  constraint inbound_mails_message_row_fkey FOREIGN KEY (message_row) REFERENCES messages("row") ON DELETE SET NULL,
  constraint inbound_mails_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint inbound_mails_raw_id_fkey FOREIGN KEY (raw_id) REFERENCES raw_mails(id),
  constraint inbound_mails_pkey PRIMARY KEY (id),
  constraint inbound_mails_raw_id_project_id_key UNIQUE (raw_id, project_id)
);

-- Secrets of domains for mail over HTTP. A secret follows from INBOUND_SECRETS and its version: no row holds it.
create table inbound_secrets (
  domain text not null,
  version integer not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  expires_at timestamp(3) with time zone,
  constraint inbound_secrets_domain_check CHECK ((length(domain) <= 253)),
  constraint inbound_secrets_version_check CHECK ((version > 0)),
  constraint inbound_secrets_pkey PRIMARY KEY (domain, version)
);

-- Recipients that a project may write to under approve-new: an address in lower case, or @ and a domain.
create table known_recipients (
  project_id text not null,
  recipient text not null,
  since timestamp(3) with time zone default clock_timestamp() not null,
  constraint known_recipients_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint known_recipients_pkey PRIMARY KEY (project_id, recipient)
);

-- Payers without code at the signing whose group then reverted as a whole. Until then their payments go alone.
create table lone_payers (
  chain_id bigint not null,
  payer text not null,
  until timestamp(3) with time zone not null,
  constraint lone_payers_pkey PRIMARY KEY (chain_id, payer)
);

-- Mail domains beside MAIL_DOMAIN. A domain is unusable until its DNS proves the ownership.
create table mail_domains (
  domain text not null,
  "row" bigint generated always as identity not null,
  token text not null,
  dkim_selector text not null,
  dkim_record text not null,
  status text default 'pending'::text not null,
  findings jsonb default '{}'::jsonb not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  checked_at timestamp(3) with time zone,
  verified_at timestamp(3) with time zone,
  wanting_since timestamp(3) with time zone default clock_timestamp(),
  constraint mail_domains_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'verified'::text, 'failed'::text]))),
  constraint mail_domains_pkey PRIMARY KEY (domain),
  constraint mail_domains_row_key UNIQUE ("row")
);

-- What a mandate has reserved in each hour. Days and months are sums of hours.
create table mandate_hours (
  mandate_row bigint not null,
  hour timestamp(3) with time zone not null,
  amount_atomic numeric(30,0) not null,
  constraint mandate_hours_mandate_row_fkey FOREIGN KEY (mandate_row) REFERENCES mandates("row") ON DELETE CASCADE,
  constraint mandate_hours_pkey PRIMARY KEY (mandate_row, hour)
);

-- What an owner allows a project to pay.
create table mandates (
  "row" bigint generated always as identity not null,
  id text not null,
  project_id text not null,
  name text not null,
  task text,
  network text not null,
  hosts text[] not null,
  resources text[] not null,
  payees text[],
  per_payment_atomic numeric(20,0) not null,
  per_hour_atomic numeric(20,0),
  per_day_atomic numeric(20,0),
  per_month_atomic numeric(20,0),
  total_atomic numeric(20,0),
  payments_per_minute integer not null,
  ask_above_atomic numeric(20,0),
  rise_percent integer not null,
  valid_from timestamp(3) with time zone not null,
  valid_until timestamp(3) with time zone,
  state text default 'active'::text not null,
  created_by text not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  changed_at timestamp(3) with time zone default clock_timestamp() not null,
  reserved_atomic numeric(30,0) default 0 not null,
  spent_atomic numeric(30,0) default 0 not null,
  released_atomic numeric(30,0) default 0 not null,
  constraint mandates_check CHECK (((cardinality(hosts) + cardinality(resources)) > 0)),
  constraint mandates_check1 CHECK ((num_nonnulls(per_hour_atomic, per_day_atomic, per_month_atomic, total_atomic) > 0)),
  constraint mandates_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint mandates_payees_check CHECK (((payees IS NULL) OR (cardinality(payees) > 0))),
  constraint mandates_state_check CHECK ((state = ANY (ARRAY['active'::text, 'frozen'::text, 'ended'::text]))),
  constraint mandates_task_check CHECK ((length(task) <= 100)),
  constraint mandates_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint mandates_pkey PRIMARY KEY ("row"),
  constraint mandates_id_key UNIQUE (id)
);

-- Registered master keys: the id and a derived check value, which reveals a different key under the same id.
create table master_keys (
  id text not null,
  check_value bytea not null,
  registered_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint master_keys_check_value_check CHECK ((octet_length(check_value) = 32)),
  constraint master_keys_pkey PRIMARY KEY (id)
);

-- Decoded bytes of attachments; messages.attachments describes them.
create table message_attachments (
  message_row bigint not null,
  attachment_id text not null,
  bytes bytea not null,
  blob bytea,
  constraint message_attachments_blob FOREIGN KEY (blob) REFERENCES blobs(hash) NOT VALID,
  constraint message_attachments_message_row_fkey FOREIGN KEY (message_row) REFERENCES messages("row") ON DELETE CASCADE,
  constraint message_attachments_pkey PRIMARY KEY (message_row, attachment_id)
);

-- The messages of each label, newest first; a trigger maintains it. A GIN index over the arrays would read the messages of every tenant with the same label, all of them before the first page.
create table message_labels (
  project_id text not null,
  label text not null,
  created_at timestamp(3) with time zone not null,
  message_row bigint not null,
  constraint message_labels_message_row_fkey FOREIGN KEY (message_row) REFERENCES messages("row") ON DELETE CASCADE,
  constraint message_labels_pkey PRIMARY KEY (project_id, label, created_at, message_row)
);

-- The received and sent messages of all inboxes.
create table messages (
  "row" bigint generated always as identity not null,
  project_id text not null,
  thread_row bigint not null,
  raw_id bigint,
  direction text not null,
  message_id text not null,
  message_id_hash bytea not null,
  header_message_id text,
  content_hash bytea,
  in_reply_to text[] default '{}'::text[] not null,
  reference_ids text[] default '{}'::text[] not null,
  from_addresses text[] default '{}'::text[] not null,
  to_addresses text[] default '{}'::text[] not null,
  cc_addresses text[] default '{}'::text[] not null,
  bcc_addresses text[] default '{}'::text[] not null,
  reply_to_addresses text[] default '{}'::text[] not null,
  subject text default ''::text not null,
  text_body text default ''::text not null,
  html_body text,
  extracted_text text,
  text_bytes integer default 0 not null,
  attachments jsonb default '[]'::jsonb not null,
  labels text[] default '{}'::text[] not null,
  delivery_status text,
  delivery_error text,
  created_at timestamp(3) with time zone not null,
  added_at timestamp(3) with time zone default clock_timestamp() not null,
  search tsvector,
  authentication jsonb,
  stored_bytes bigint default 0 not null,
  codes jsonb,
  links jsonb,
  send_at timestamp(3) with time zone,
  raw_expired boolean default false not null,
  invites jsonb,
  constraint messages_delivery_status_check CHECK ((delivery_status = ANY (ARRAY['queued'::text, 'sent'::text, 'deferred'::text, 'bounced'::text, 'failed'::text, 'scheduled'::text, 'held'::text, 'cancelled'::text, 'rejected'::text, 'expired'::text]))),
  constraint messages_direction_check CHECK ((direction = ANY (ARRAY['received'::text, 'sent'::text]))),
  constraint messages_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint messages_raw_id_fkey FOREIGN KEY (raw_id) REFERENCES raw_mails(id),
  constraint messages_thread_row_fkey FOREIGN KEY (thread_row) REFERENCES threads("row") ON DELETE CASCADE,
  constraint messages_pkey PRIMARY KEY ("row"),
  constraint messages_project_id_message_id_hash_key UNIQUE (project_id, message_id_hash)
) with (fillfactor=80);

-- The migrations that ran, with their time.
create table migrations (
  name text not null,
  applied_at timestamp with time zone default clock_timestamp() not null,
  constraint migrations_pkey PRIMARY KEY (name)
);

-- MTA-STS policies of domains that mail is sent to, until they expire (RFC 8461).
create table mta_sts_policies (
  domain text not null,
  policy_id text not null,
  mode text not null,
  mx text[] not null,
  expires_at timestamp(3) with time zone not null,
  constraint mta_sts_policies_mode_check CHECK ((mode = ANY (ARRAY['enforce'::text, 'testing'::text, 'none'::text]))),
  constraint mta_sts_policies_pkey PRIMARY KEY (domain)
);

-- What OAuth clients say about themselves at the URL that is their id.
create table oauth_client_documents (
  id text not null,
  url text not null,
  state text not null,
  name text,
  redirect_uris text[],
  fault text,
  wanted_at timestamp(3) with time zone default clock_timestamp() not null,
  fresh_until timestamp(3) with time zone,
  network text default ''::text not null,
  constraint oauth_client_documents_check CHECK (((state <> 'ready'::text) OR ((name IS NOT NULL) AND (redirect_uris IS NOT NULL) AND (fresh_until IS NOT NULL)))),
  constraint oauth_client_documents_fault_check CHECK ((length(fault) <= 300)),
  constraint oauth_client_documents_name_check CHECK ((length(name) <= 100)),
  constraint oauth_client_documents_network_check CHECK ((length(network) <= 50)),
  constraint oauth_client_documents_state_check CHECK ((state = ANY (ARRAY['wanted'::text, 'ready'::text, 'failed'::text]))),
  constraint oauth_client_documents_url_check CHECK ((length(url) <= 500)),
  constraint oauth_client_documents_pkey PRIMARY KEY (id)
);

-- OAuth clients that registered themselves (RFC 7591). Those without a grant are deleted after a day.
create table oauth_clients (
  id text not null,
  name text not null,
  redirect_uris text[] not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  used_at timestamp(3) with time zone,
  network text default ''::text not null,
  constraint oauth_clients_name_check CHECK ((length(name) <= 100)),
  constraint oauth_clients_network_check CHECK ((length(network) <= 50)),
  constraint oauth_clients_pkey PRIMARY KEY (id)
);

-- Hashes of authorization codes. A used one stays a day: its second use ends the grant.
create table oauth_codes (
  code_hash bytea not null,
  grant_id text not null,
  client_id text not null,
  redirect_uri text not null,
  challenge text not null,
  expires_at timestamp(3) with time zone not null,
  used_at timestamp(3) with time zone,
  constraint oauth_codes_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grants(id) ON DELETE CASCADE,
  constraint oauth_codes_pkey PRIMARY KEY (code_hash)
);

-- What an owner allowed an OAuth client: one project, some scopes, until a time.
create table oauth_grants (
  id text not null,
  project_id text not null,
  client_id text not null,
  client_name text not null,
  client_host text,
  redirect_host text not null,
  scopes text[] not null,
  resource text not null,
  holds_mail boolean default false not null,
  actor text not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  expires_at timestamp(3) with time zone not null,
  used_at timestamp(3) with time zone,
  revoked_at timestamp(3) with time zone,
  person_id text default 'per_000000000000000000000000'::text not null,
  refreshed_to timestamp(3) with time zone,
  "row" bigint generated always as identity not null,
  constraint oauth_grants_client_host_check CHECK ((length(client_host) <= 255)),
  constraint oauth_grants_client_id_check CHECK ((length(client_id) <= 500)),
  constraint oauth_grants_client_name_check CHECK ((length(client_name) <= 100)),
  constraint oauth_grants_redirect_host_check CHECK ((length(redirect_host) <= 255)),
  constraint oauth_grants_resource_check CHECK ((length(resource) <= 500)),
  constraint oauth_grants_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint oauth_grants_pkey PRIMARY KEY (id)
);

-- Requests for consent that wait for an owner, ten minutes at most.
create table oauth_requests (
  id text not null,
  browser_hash bytea not null,
  client_id text not null,
  client_name text not null,
  client_host text,
  redirect_uri text not null,
  state text,
  challenge text not null,
  scopes text[] not null,
  resource text not null,
  expires_at timestamp(3) with time zone not null,
  decided_at timestamp(3) with time zone,
  network text default ''::text not null,
  constraint oauth_requests_client_host_check CHECK ((length(client_host) <= 255)),
  constraint oauth_requests_client_id_check CHECK ((length(client_id) <= 500)),
  constraint oauth_requests_client_name_check CHECK ((length(client_name) <= 100)),
  constraint oauth_requests_network_check CHECK ((length(network) <= 50)),
  constraint oauth_requests_redirect_uri_check CHECK ((length(redirect_uri) <= 500)),
  constraint oauth_requests_resource_check CHECK ((length(resource) <= 500)),
  constraint oauth_requests_state_check CHECK ((length(state) <= 2000)),
  constraint oauth_requests_pkey PRIMARY KEY (id)
);

-- Hashes of access and refresh tokens.
create table oauth_tokens (
  token_hash bytea not null,
  kind text not null,
  grant_id text not null,
  scopes text[] not null,
  expires_at timestamp(3) with time zone not null,
  rotated_at timestamp(3) with time zone,
  constraint oauth_tokens_kind_check CHECK ((kind = ANY (ARRAY['access'::text, 'refresh'::text]))),
  constraint oauth_tokens_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grants(id) ON DELETE CASCADE,
  constraint oauth_tokens_pkey PRIMARY KEY (token_hash)
);

-- Challenges of an endpoint in a day (UTC), and payments that were refused before a claim.
create table offer_counts (
  project_id text not null,
  endpoint_id text not null,
  day date not null,
  challenges bigint not null,
  refusals bigint not null,
  constraint offer_counts_pkey PRIMARY KEY (project_id, day, endpoint_id)
);

-- The sending of a sent message. `attempt` counts its attempts.
create table outbound_mails (
  message_row bigint not null,
  project_id text not null,
  state text default 'queued'::text not null,
  attempt integer default 0 not null,
  next_attempt_at timestamp(3) with time zone not null,
  accepted_at timestamp(3) with time zone not null,
  unsubscribe jsonb,
  names jsonb,
  headers jsonb,
  traceparent text,
  approved_hash bytea,
  own_event jsonb,
  constraint outbound_mails_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'deferred'::text, 'done'::text, 'held'::text]))),
  constraint outbound_mails_message_row_fkey FOREIGN KEY (message_row) REFERENCES messages("row") ON DELETE CASCADE,
  constraint outbound_mails_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint outbound_mails_pkey PRIMARY KEY (message_row)
);

-- The outcome of each recipient of an outbound mail.
create table outbound_recipients (
  message_row bigint not null,
  address text not null,
  state text default 'queued'::text not null,
  error text,
  updated_at timestamp(3) with time zone default clock_timestamp() not null,
  attempts integer default 0 not null,
  next_attempt_at timestamp(3) with time zone default clock_timestamp() not null,
  -- The id of the copy in the 250 answer of the relay: its reports name it.
  relay_id text,
  complained_at timestamp(3) with time zone,
  constraint outbound_recipients_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'sent'::text, 'deferred'::text, 'failed'::text, 'bounced'::text]))),
  constraint outbound_recipients_message_row_fkey FOREIGN KEY (message_row) REFERENCES outbound_mails(message_row) ON DELETE CASCADE,
  constraint outbound_recipients_pkey PRIMARY KEY (message_row, address)
);

-- The events that a project organizes, each with its last SEQUENCE: they are stored together with their mail.
create table own_events (
  project_id text not null,
  uid_hash bytea not null,
  sequence integer default 0 not null,
  event jsonb not null,
  over_at timestamp with time zone default (now() + '760 days'::interval) not null,
  constraint own_events_sequence_check CHECK ((sequence >= 0)),
  constraint own_events_uid_hash_check CHECK ((octet_length(uid_hash) = 32)),
  constraint own_events_pkey PRIMARY KEY (project_id, uid_hash)
);

-- Challenges that wait for a passkey, five minutes at most. Each is used once.
create table passkey_challenges (
  challenge_hash bytea not null,
  browser_hash bytea not null,
  person_id text,
  expires_at timestamp(3) with time zone not null,
  network text default ''::text not null,
  constraint passkey_challenges_network_check CHECK ((length(network) <= 50)),
  constraint passkey_challenges_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE,
  constraint passkey_challenges_pkey PRIMARY KEY (challenge_hash)
);

-- Public keys of passkeys (WebAuthn) that sign a person in.
create table passkeys (
  credential_id text not null,
  person_id text not null,
  public_key bytea not null,
  counter bigint not null,
  transports text[] default '{}'::text[] not null,
  name text not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  used_at timestamp(3) with time zone,
  constraint passkeys_credential_id_check CHECK ((length(credential_id) <= 1364)),
  constraint passkeys_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint passkeys_public_key_check CHECK ((length(public_key) <= 4096)),
  constraint passkeys_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE,
  constraint passkeys_pkey PRIMARY KEY (credential_id)
);

-- Checks of authorizations by the payment workers.
create table payment_checks (
  id text not null,
  project_id text not null,
  claim jsonb not null,
  claims boolean not null,
  reason_without_code text,
  state text default 'open'::text not null,
  reason text,
  payment_id text,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint payment_checks_state_check CHECK ((state = ANY (ARRAY['open'::text, 'passed'::text, 'refused'::text]))),
  constraint payment_checks_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(id),
  constraint payment_checks_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint payment_checks_pkey PRIMARY KEY (id)
);

-- The payments of all projects.
create table payments (
  id text not null,
  "row" bigint generated always as identity not null,
  project_id text not null,
  endpoint_id text,
  match_key text,
  resource_url text not null,
  description text,
  network text not null,
  chain_id bigint not null,
  asset text not null,
  payer text not null,
  recipient text not null,
  amount_atomic bigint not null,
  valid_after numeric(78,0) not null,
  valid_before numeric(78,0) not null,
  authorization_nonce text not null,
  signature text not null,
  claim_head bigint,
  state text default 'verified'::text not null,
  failure_stage text,
  failure_reason text,
  failure_detail text,
  trouble text,
  trouble_count integer default 0 not null,
  revert_count integer default 0 not null,
  tx_hash text,
  block_number bigint,
  block_hash text,
  signed_receipt text,
  granted_at timestamp(3) with time zone,
  grant_key text,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  settled_at timestamp(3) with time zone,
  finalized_at timestamp(3) with time zone,
  factory text,
  factory_data text,
  x402_version smallint default 1 not null,
  resource_source text default 'seller'::text not null,
  payment_identifier text,
  settle_after timestamp(3) with time zone,
  goes_alone boolean default false not null,
  log_index integer,
  traceparent text,
  details_removed_at timestamp(3) with time zone,
  contradiction_count smallint default 0 not null,
  constraint payments_amount_atomic_check CHECK ((amount_atomic > 0)),
  constraint payments_check CHECK (((state = 'failed'::text) = (failure_reason IS NOT NULL))),
  constraint payments_check1 CHECK (((state <> 'settled'::text) OR ((tx_hash IS NOT NULL) AND (signed_receipt IS NOT NULL)))),
  constraint payments_check2 CHECK (((factory IS NULL) = (factory_data IS NULL))),
  constraint payments_failure_stage_check CHECK ((failure_stage = ANY (ARRAY['verify'::text, 'settle'::text]))),
  constraint payments_state_check CHECK ((state = ANY (ARRAY['verified'::text, 'settled'::text, 'failed'::text]))),
  constraint payments_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES seller_endpoints(id) ON DELETE SET NULL,
  constraint payments_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint payments_pkey PRIMARY KEY (id),
  constraint payments_row_key UNIQUE ("row")
);

-- People who sign in to the console. Each has one role.
create table people (
  id text not null,
  email text,
  name text not null,
  role text not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  signed_in_at timestamp(3) with time zone,
  oidc_issuer text,
  oidc_subject text,
  constraint people_check CHECK (((oidc_issuer IS NULL) = (oidc_subject IS NULL))),
  constraint people_email_check CHECK (((email = lower(email)) AND (length(email) <= 320))),
  constraint people_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint people_oidc_issuer_check CHECK ((length(oidc_issuer) <= 500)),
  constraint people_oidc_subject_check CHECK ((length(oidc_subject) <= 255)),
  constraint people_role_check CHECK ((role = ANY (ARRAY['operator'::text, 'owner'::text, 'viewer'::text]))),
  constraint people_pkey PRIMARY KEY (id),
  constraint people_email_key UNIQUE (email),
  constraint people_oidc_issuer_oidc_subject_key UNIQUE (oidc_issuer, oidc_subject)
);

-- The projects that an owner or a viewer sees.
create table person_projects (
  person_id text not null,
  project_id text not null,
  constraint person_projects_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id) ON DELETE CASCADE,
  constraint person_projects_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint person_projects_pkey PRIMARY KEY (person_id, project_id)
);

-- Requests of each platform key. Those of project keys count for their project.
create table platform_key_usage (
  key_id bigint not null,
  request_count bigint default 0 not null,
  last_used_at timestamp(3) with time zone,
  constraint platform_key_usage_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE,
  constraint platform_key_usage_pkey PRIMARY KEY (key_id)
);

-- The metrics of SMTP listeners and workers, for /metrics. They are worthless after a crash.
create unlogged table process_reports (
  id uuid not null,
  part text not null,
  reported_at timestamp(3) with time zone default clock_timestamp() not null,
  metrics json not null,
  constraint process_reports_pkey PRIMARY KEY (id)
);

-- Limits of a project that differ from those of the service; null: the service's.
create table project_limits (
  project_id text not null,
  storage_bytes bigint,
  daily_settlements bigint,
  daily_gas bigint,
  daily_text_bytes bigint,
  daily_text_seconds bigint,
  constraint project_limits_daily_gas_check CHECK ((daily_gas >= 0)),
  constraint project_limits_daily_settlements_check CHECK ((daily_settlements >= 0)),
  constraint project_limits_daily_text_bytes_check CHECK ((daily_text_bytes >= 0)) NOT VALID,
  constraint project_limits_daily_text_seconds_check CHECK ((daily_text_seconds >= 0)) NOT VALID,
  constraint project_limits_storage_bytes_check CHECK ((storage_bytes >= 0)),
  constraint project_limits_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint project_limits_pkey PRIMARY KEY (project_id)
);

-- The retention of projects that differ from the service; null: the service's.
create table project_retention (
  project_id text not null,
  mail_days integer,
  raw_mail_days integer,
  deliveries_days integer,
  logs_days integer,
  idempotency_keys_days integer,
  payment_details_days integer,
  constraint project_retention_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint project_retention_pkey PRIMARY KEY (project_id)
);

-- Bytes of mail of each project; triggers on messages maintain it, so no path can forget it.
create table project_storage (
  project_id text not null,
  bytes bigint not null,
  constraint project_storage_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint project_storage_pkey PRIMARY KEY (project_id)
) with (fillfactor=50);

-- Request counters, apart from projects: they change with every request and must not lock the project's row.
create table project_usage (
  project_id text not null,
  request_count bigint default 0 not null,
  last_used_at timestamp(3) with time zone,
  constraint project_usage_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint project_usage_pkey PRIMARY KEY (project_id)
);

-- The webhooks of projects. The columns of the secret are those of seller_endpoints.
create table project_webhooks (
  id text not null,
  project_id text not null,
  url text not null,
  events text[] not null,
  webhook_key_id text,
  webhook_wrapped_key bytea,
  webhook_ciphertext bytea,
  "row" bigint generated always as identity not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  deleted_at timestamp(3) with time zone,
  constraint project_webhooks_events_check CHECK ((cardinality(events) > 0)),
  constraint project_webhooks_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint project_webhooks_pkey PRIMARY KEY (id),
  constraint project_webhooks_row_key UNIQUE ("row")
);

-- Where the WAL stood when a request that may have written was answered. A replica that has not come this far may lack what the project wrote itself. Kept only with DATABASE_REPLICA_URL.
create table project_writes (
  project_id text not null,
  lsn pg_lsn not null,
  constraint project_writes_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint project_writes_pkey PRIMARY KEY (project_id)
);

-- Projects. Each has one inbox; a deleted project keeps its row.
create table projects (
  id text not null,
  name text not null,
  purpose text not null,
  email_address text not null,
  pay_to text,
  payments_enabled boolean default false not null,
  "row" bigint generated always as identity not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  deleted_at timestamp(3) with time zone,
  display_name text,
  send_policy text default 'free'::text not null,
  approver_email text,
  approval_hours integer default 72 not null,
  erased_at timestamp(3) with time zone,
  own_addresses text[] default '{}'::text[] not null,
  constraint projects_purpose_check CHECK ((purpose = ANY (ARRAY['SELLER'::text, 'BUYER'::text]))),
  constraint projects_send_policy_check CHECK ((send_policy = ANY (ARRAY['free'::text, 'approve'::text, 'approve-new'::text]))),
  constraint projects_pkey PRIMARY KEY (id),
  constraint projects_row_key UNIQUE ("row")
);

-- The mandates in which a payment counts.
create table purchase_mandates (
  purchase_row bigint not null,
  mandate_row bigint not null,
  reserved_at timestamp(3) with time zone not null,
  constraint purchase_mandates_mandate_row_fkey FOREIGN KEY (mandate_row) REFERENCES mandates("row") ON DELETE CASCADE,
  constraint purchase_mandates_purchase_row_fkey FOREIGN KEY (purchase_row) REFERENCES purchases("row") ON DELETE CASCADE,
  constraint purchase_mandates_pkey PRIMARY KEY (purchase_row, mandate_row)
);

-- Requests that agents pay for, with what they cost.
create table purchases (
  "row" bigint generated always as identity not null,
  id text not null,
  project_id text not null,
  kind text not null,
  idempotency_key text,
  request_hash bytea not null,
  state text default 'queued'::text not null,
  reason text,
  detail text,
  method text not null,
  host text not null,
  path text not null,
  max_atomic numeric(20,0) not null,
  approved_hash bytea,
  why text,
  asked_by text not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  ended_at timestamp(3) with time zone,
  content_version integer default 1 not null,
  key_id text,
  wrapped_key bytea,
  ciphertext bytea,
  content_until timestamp(3) with time zone,
  status integer,
  sends integer default 0 not null,
  x402_version integer,
  network text,
  asset text,
  pay_to text,
  amount_atomic numeric(20,0),
  resource text,
  description text,
  money text,
  payer text,
  nonce text,
  valid_before bigint,
  signed_block bigint,
  reserved_at timestamp(3) with time zone,
  base_atomic numeric(20,0),
  base_at timestamp(3) with time zone,
  tx_hash text,
  block_number bigint,
  block_hash text,
  spent_at timestamp(3) with time zone,
  final_at timestamp(3) with time zone,
  claimed_tx text,
  seller_receipt text,
  told_at timestamp(3) with time zone,
  asked_for text,
  asked_hash bytea,
  cancel_signature text,
  cancel_sent_at timestamp(3) with time zone,
  transfer_signature text,
  transfer_sent_at timestamp(3) with time zone,
  cancel_seen_at timestamp(3) with time zone,
  refund_of text,
  credential_name text,
  tool text,
  signed_in_at timestamp(3) with time zone,
  seller_offer text,
  receipt_verdict text,
  offer_verdict text,
  receipt text,
  log_index integer,
  -- The service has sent the present call (a cancellation or a transfer) of this payment to the chain this often.
  calls_sent smallint default 0 not null,
  constraint purchases_check CHECK ((((key_id IS NULL) = (ciphertext IS NULL)) AND ((key_id IS NULL) = (wrapped_key IS NULL)))),
  constraint purchases_check1 CHECK (((money IS NULL) = (nonce IS NULL))),
  constraint purchases_claimed_tx_check CHECK ((length(claimed_tx) <= 66)),
  constraint purchases_content_version_check CHECK ((content_version = ANY (ARRAY[1, 2, 3]))),
  constraint purchases_description_check CHECK ((length(description) <= 2048)),
  constraint purchases_detail_check CHECK ((length(detail) <= 500)),
  constraint purchases_idempotency_key_check CHECK ((length(idempotency_key) <= 255)),
  constraint purchases_kind_check CHECK ((kind = ANY (ARRAY['payment'::text, 'quote'::text, 'sweep'::text, 'refund'::text]))) NOT VALID,
  constraint purchases_money_check CHECK ((money = ANY (ARRAY['open'::text, 'spent'::text, 'released'::text]))),
  constraint purchases_resource_check CHECK ((length(resource) <= 2048)),
  constraint purchases_seller_receipt_check CHECK ((length(seller_receipt) <= 8192)),
  constraint purchases_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'asking'::text, 'waiting'::text, 'signed'::text, 'answered'::text, 'quoted'::text, 'refused'::text, 'failed'::text, 'unknown'::text]))),
  constraint purchases_why_check CHECK ((length(why) <= 500)),
  constraint purchases_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint purchases_pkey PRIMARY KEY ("row"),
  constraint purchases_id_key UNIQUE (id),
  constraint purchases_payer_nonce_key UNIQUE (payer, nonce),
  constraint purchases_project_id_idempotency_key_key UNIQUE (project_id, idempotency_key)
);

-- The gas of the calls that the service has sent for the purse of a project in one UTC day.
create table purse_gas (
  project_id text not null,
  day date not null,
  gas bigint not null,
  constraint purse_gas_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint purse_gas_pkey PRIMARY KEY (project_id)
) with (fillfactor=50);

-- Private keys of purses, sealed. Old ones stay, because they own what is left at their address.
create table purse_keys (
  address text not null,
  project_id text not null,
  key_id text not null,
  wrapped_key bytea not null,
  ciphertext bytea not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  retired_at timestamp(3) with time zone,
  balance_atomic numeric(20,0),
  balance_block bigint,
  balance_at timestamp(3) with time zone,
  constraint purse_keys_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint purse_keys_pkey PRIMARY KEY (address)
);

-- The purse of a project. Its lock comes before those of mandates and purchases.
create table purses (
  project_id text not null,
  address text not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  frozen_at timestamp(3) with time zone,
  frozen_by text,
  low_atomic numeric(20,0),
  low_told_at timestamp(3) with time zone,
  balance_atomic numeric(20,0),
  balance_block bigint,
  balance_at timestamp(3) with time zone,
  max_atomic numeric(20,0),
  payout_address text,
  payout_next text,
  payout_next_at timestamp(3) with time zone,
  constraint purses_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint purses_pkey PRIMARY KEY (project_id)
);

-- Request counters of the current minute. They are worthless after a crash and need no write-ahead log.
create unlogged table rate_windows (
  subject text not null,
  window_start timestamp with time zone not null,
  used integer not null,
  constraint rate_windows_pkey PRIMARY KEY (subject)
);

-- The bytes of received and composed mail; several inboxes can share one row.
create table raw_mails (
  id bigint generated always as identity not null,
  source_key uuid not null,
  bytes bytea not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  blob bytea,
  constraint raw_mails_blob FOREIGN KEY (blob) REFERENCES blobs(hash) NOT VALID,
  constraint raw_mails_pkey PRIMARY KEY (id),
  constraint raw_mails_source_key_key UNIQUE (source_key)
);

-- The public keys of all receipt signing keys, retired ones included: receipts outlive keys.
create table receipt_keys (
  kid text not null,
  did text not null,
  public_key_hex text not null,
  registered_at timestamp(3) with time zone default clock_timestamp() not null,
  signs_since timestamp(3) with time zone,
  constraint receipt_keys_pkey PRIMARY KEY (kid)
);

-- A piece of the sorted words of a segment, each with the messages that hold it.
create table search_blocks (
  segment_id bigint not null,
  first_term bytea not null,
  terms bytea not null,
  constraint search_blocks_segment_id_fkey FOREIGN KEY (segment_id) REFERENCES search_segments(id) ON DELETE CASCADE,
  constraint search_blocks_pkey PRIMARY KEY (segment_id, first_term)
);

-- Up to 240 messages of a project whose words stand in a segment.
create table search_leaves (
  project_id text not null,
  leaf integer not null,
  since timestamp(3) with time zone not null,
  until timestamp(3) with time zone not null,
  message_rows bigint[] not null,
  constraint search_leaves_message_rows_check CHECK (((cardinality(message_rows) >= 1) AND (cardinality(message_rows) <= 240))),
  constraint search_leaves_pkey PRIMARY KEY (project_id, leaf)
) with (toast_tuple_target=4080);

-- Messages whose words no segment holds yet. A search reads each of them.
create table search_pending (
  project_id text not null,
  created_at timestamp(3) with time zone not null,
  message_row bigint not null,
  text_bytes integer not null,
  constraint search_pending_pkey PRIMARY KEY (project_id, created_at, message_row)
);

-- The sorted words of 1, 16 or 256 neighbouring leaves. Sixteen become one.
create table search_segments (
  id bigint generated always as identity not null,
  project_id text not null,
  first_leaf integer not null,
  last_leaf integer not null,
  since timestamp(3) with time zone not null,
  until timestamp(3) with time zone not null,
  checked_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint search_segments_check CHECK ((last_leaf >= first_leaf)),
  constraint search_segments_pkey PRIMARY KEY (id),
  constraint search_segments_project_id_first_leaf_key UNIQUE (project_id, first_leaf) DEFERRABLE INITIALLY DEFERRED
);

-- The endpoints of all projects.
create table seller_endpoints (
  id text not null,
  project_id text not null,
  url_pattern text not null,
  match_key text not null,
  price_atomic bigint not null,
  network text not null,
  description text,
  webhook_url text,
  webhook_secret text,
  verification_status text default 'pending'::text not null,
  verification_detail text,
  verification_checked_at timestamp(3) with time zone,
  "row" bigint generated always as identity not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  deleted_at timestamp(3) with time zone,
  webhook_key_id text,
  webhook_wrapped_key bytea,
  webhook_ciphertext bytea,
  discoverable boolean default false not null,
  challenge_versions smallint[] default '{}'::smallint[] not null,
  check_queued_at timestamp(3) with time zone,
  check_started_at timestamp(3) with time zone,
  check_provoked_at timestamp(3) with time zone,
  challenge_pay_to text[] default '{}'::text[] not null,
  metadata jsonb default '{}'::jsonb not null,
  open_api_url text,
  open_api_status text,
  open_api_detail text,
  open_api_metadata jsonb default '{}'::jsonb not null,
  seen_metadata jsonb default '{}'::jsonb not null,
  paused_at timestamp(3) with time zone,
  constraint seller_endpoints_check CHECK ((((webhook_key_id IS NULL) = (webhook_ciphertext IS NULL)) AND ((webhook_key_id IS NULL) = (webhook_wrapped_key IS NULL)) AND ((webhook_key_id IS NULL) OR (webhook_secret IS NULL)))),
  constraint seller_endpoints_price_atomic_check CHECK ((price_atomic > 0)),
  constraint seller_endpoints_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint seller_endpoints_pkey PRIMARY KEY (id),
  constraint seller_endpoints_row_key UNIQUE ("row")
);

-- Recipients a project has written to on a UTC day. Send intents lock the row before they read it. The row is stored before the first send of a project, because a row that is not there cannot be locked.
create table send_quotas (
  project_id text not null,
  day date not null,
  used integer not null,
  allowed integer not null,
  constraint send_quotas_within CHECK ((used <= allowed)),
  constraint send_quotas_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint send_quotas_pkey PRIMARY KEY (project_id)
) with (fillfactor=50);

-- The settings RETENTION_*_DAYS. The workers write them at their start, so that every process reads the same.
create table service_retention (
  singleton boolean default true not null,
  mail_days integer,
  raw_mail_days integer,
  deliveries_days integer,
  logs_days integer,
  idempotency_keys_days integer,
  payment_details_days integer,
  constraint service_retention_singleton_check CHECK (singleton),
  constraint service_retention_pkey PRIMARY KEY (singleton)
);

-- What the settlements of a project cost the operator on a UTC day. The check holds the limit against two concurrent statements. The second one fails as a whole. Its claims then run again one by one.
create table settlement_budgets (
  project_id text not null,
  day date not null,
  settlements bigint default 0 not null,
  allowed bigint,
  gas bigint default 0 not null,
  constraint settlement_budgets_within CHECK ((settlements <= allowed)),
  constraint settlement_budgets_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint settlement_budgets_pkey PRIMARY KEY (project_id)
) with (fillfactor=50);

-- Addresses that asked for a sign-in link. Most rows may name nobody: the worker alone looks.
create table sign_in_mails (
  id text not null,
  email text not null,
  browser_hash bytea not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  expires_at timestamp(3) with time zone not null,
  done_at timestamp(3) with time zone,
  constraint sign_in_mails_email_check CHECK ((length(email) <= 320)),
  constraint sign_in_mails_pkey PRIMARY KEY (id)
);

-- The last report of each SMTP listener. /readyz shows it: the API cannot see the listener's disk.
create table smtp_listeners (
  id uuid not null,
  reported_at timestamp(3) with time zone default clock_timestamp() not null,
  trouble text,
  constraint smtp_listeners_pkey PRIMARY KEY (id)
);

-- The counts of the service per hour, summed from its minutes.
create table statistics_hours (
  hour timestamp with time zone not null,
  mail_in integer not null,
  mail_out integer not null,
  payments integer not null,
  paid_atomic numeric not null,
  webhooks_ok integer not null,
  webhooks_failed integer not null,
  constraint statistics_hours_pkey PRIMARY KEY (hour)
);

-- The counts of the service per minute.
create table statistics_minutes (
  minute timestamp with time zone not null,
  mail_in integer not null,
  mail_out integer not null,
  payments integer not null,
  paid_atomic numeric not null,
  webhooks_ok integer not null,
  webhooks_failed integer not null,
  jobs jsonb not null,
  constraint statistics_minutes_pkey PRIMARY KEY (minute)
);

-- Suppressions: addresses that a project must not send to any more, because they do not exist or accept no mail.
create table suppressions (
  "row" bigint generated always as identity not null,
  project_id text not null,
  address text not null,
  reason text not null,
  detail text,
  message_id text,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint suppressions_reason_check CHECK ((reason = ANY (ARRAY['bounce'::text, 'rejection'::text, 'complaint'::text]))),
  constraint suppressions_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint suppressions_pkey PRIMARY KEY (project_id, address),
  constraint suppressions_row_key UNIQUE ("row")
);

-- The Message-IDs of each thread: of its messages, and of unseen messages that they refer to. A parent that arrives after its reply finds its thread here. By hash: a Message-ID can have 998 characters.
create table thread_identifiers (
  project_id text not null,
  message_id_hash bytea not null,
  thread_row bigint not null,
  constraint thread_identifiers_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint thread_identifiers_thread_row_fkey FOREIGN KEY (thread_row) REFERENCES threads("row") ON DELETE CASCADE,
  constraint thread_identifiers_pkey PRIMARY KEY (project_id, message_id_hash)
);

-- The conversations of an inbox.
create table threads (
  "row" bigint generated always as identity not null,
  id text not null,
  project_id text not null,
  subject text not null,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  message_count integer default 0 not null,
  subject_key bytea,
  constraint threads_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint threads_pkey PRIMARY KEY ("row"),
  constraint threads_id_key UNIQUE (id)
);

-- Requests with a secret, from their acceptance until ten minutes after their end. Nothing here holds the secret.
create table vault_uses (
  id text not null,
  project_id text not null,
  credential_name text not null,
  state text default 'queued'::text not null,
  error text,
  method text not null,
  host text not null,
  path text not null,
  status integer,
  audit_row bigint not null,
  content_version integer default 1 not null,
  key_id text,
  wrapped_key bytea,
  ciphertext bytea,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  ended_at timestamp(3) with time zone,
  expires_at timestamp(3) with time zone not null,
  constraint vault_uses_check CHECK ((((key_id IS NULL) = (ciphertext IS NULL)) AND ((key_id IS NULL) = (wrapped_key IS NULL)))),
  constraint vault_uses_content_version_check CHECK ((content_version = ANY (ARRAY[1, 2]))),
  constraint vault_uses_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'sending'::text, 'answered'::text, 'failed'::text, 'unknown'::text]))),
  constraint vault_uses_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint vault_uses_pkey PRIMARY KEY (id)
);

-- The code of contract wallets that have paid. Wallets of one product share a row, because their code is the same.
create table wallet_codes (
  chain_id bigint not null,
  code text not null,
  payer text not null,
  is_shared boolean default false not null,
  constraint wallet_codes_pkey PRIMARY KEY (chain_id, code)
);

-- Contract wallets whose transaction passed the simulation and reverted on chain. They wait before they may pay again.
create table wallet_suspensions (
  chain_id bigint not null,
  payer text not null,
  payer_code text not null,
  payment_id text not null,
  suspended_at timestamp(3) with time zone default clock_timestamp() not null,
  constraint wallet_suspensions_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(id),
  constraint wallet_suspensions_pkey PRIMARY KEY (chain_id, payer)
);

-- The ended attempts of deliveries.
create table webhook_attempts (
  delivery_id text not null,
  n integer not null,
  started_at timestamp(3) with time zone not null,
  ended_at timestamp(3) with time zone not null,
  status_code integer,
  error text,
  response_prefix text,
  constraint webhook_attempts_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES webhook_deliveries(id) ON DELETE CASCADE,
  constraint webhook_attempts_pkey PRIMARY KEY (delivery_id, n)
);

-- Deliveries of events to webhooks. `next_attempt_at` is null after the end.
create table webhook_deliveries (
  id text not null,
  project_id text not null,
  endpoint_id text,
  subject_id text,
  event text not null,
  idempotency_key text not null,
  url text not null,
  body bytea not null,
  status text default 'pending'::text not null,
  attempt integer default 0 not null,
  next_attempt_at timestamp(3) with time zone,
  "row" bigint generated always as identity not null,
  created_at timestamp(3) with time zone default clock_timestamp() not null,
  attempts_before integer default 0 not null,
  error text,
  webhook_id text,
  traceparent text,
  constraint webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'aborted'::text, 'exhausted'::text]))),
  constraint webhook_deliveries_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES seller_endpoints(id) ON DELETE CASCADE,
  constraint webhook_deliveries_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint webhook_deliveries_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES project_webhooks(id) ON DELETE CASCADE,
  constraint webhook_deliveries_pkey PRIMARY KEY (id),
  constraint webhook_deliveries_row_key UNIQUE ("row")
);

-- The running worker pools. The process of a pool holds the advisory lock (WORKER_LOCK_CLASS, id).
create table worker_pools (
  id integer generated always as identity not null,
  graphile_pool_id text not null,
  pool_name text not null,
  registered_at timestamp(3) with time zone default clock_timestamp() not null,
  suspect_since timestamp(3) with time zone,
  constraint worker_pools_pkey PRIMARY KEY (id)
);

CREATE INDEX aggregate_reports_age ON public.aggregate_reports USING btree (received_at);

CREATE INDEX aggregate_reports_end ON public.aggregate_reports USING btree (ends_at);

CREATE UNIQUE INDEX api_keys_hash ON public.api_keys USING btree (key_hash);

CREATE UNIQUE INDEX api_keys_live_project ON public.api_keys USING btree (project_id) WHERE (revoked_at IS NULL);

CREATE INDEX api_keys_lookup ON public.api_keys USING btree (lookup_prefix) WHERE (revoked_at IS NULL);

CREATE INDEX approval_links_approval ON public.approval_links USING btree (approval_id);

CREATE INDEX approvals_listing ON public.approvals USING btree (project_id, requested_at DESC, "row" DESC);

CREATE UNIQUE INDEX approvals_subject ON public.approvals USING btree (project_id, kind, subject);

CREATE INDEX approvals_waiting ON public.approvals USING btree (project_id, requested_at DESC, "row" DESC) WHERE (state = 'waiting'::text);

CREATE INDEX attachment_texts_pending ON public.attachment_texts USING btree (project_id, message_row) WHERE (state = 'pending'::text);

CREATE INDEX attachment_texts_ready ON public.attachment_texts USING btree (project_id, message_row) WHERE (state = 'ready'::text);

CREATE INDEX audit_log_listing ON public.audit_log USING btree (project_id, at DESC, "row" DESC);

CREATE INDEX audit_log_subject ON public.audit_log USING btree (project_id, subject, at DESC, "row" DESC) WHERE (subject IS NOT NULL);

CREATE INDEX blobs_idle ON public.blobs USING btree (idle_since) WHERE (idle_since IS NOT NULL);

CREATE INDEX calendar_events_expand ON public.calendar_events USING btree (expand_at) WHERE (expand_at IS NOT NULL);

CREATE INDEX calendar_events_forgotten ON public.calendar_events USING btree ("row") WHERE ((message_row IS NULL) AND (answer = 'needs-action'::text) AND (NOT is_own));

CREATE INDEX calendar_events_message ON public.calendar_events USING btree (message_row) WHERE (message_row IS NOT NULL);

CREATE INDEX calendar_events_over ON public.calendar_events USING btree (project_id, over_at) WHERE (message_row IS NULL);

CREATE INDEX calendar_instances_project ON public.calendar_instances USING btree (project_id, ends_at);

CREATE INDEX chain_transaction_payments_payment ON public.chain_transaction_payments USING btree (payment_id);

CREATE INDEX chain_transactions_open ON public.chain_transactions USING btree (chain_id, wallet, nonce) WHERE (state = 'open'::text);

CREATE INDEX chain_transactions_payment ON public.chain_transactions USING btree (payment_id);

CREATE INDEX chain_transactions_slot ON public.chain_transactions USING btree (chain_id, wallet, nonce);

CREATE INDEX company_sign_ins_expiry ON public.company_sign_ins USING btree (expires_at);

CREATE INDEX company_sign_ins_person ON public.company_sign_ins USING btree (person_id);

CREATE INDEX console_links_of_person ON public.console_links USING btree (person_id);

CREATE INDEX console_sessions_of_person ON public.console_sessions USING btree (person_id);

CREATE INDEX credential_versions_key ON public.credential_versions USING btree (key_id);

CREATE INDEX credentials_expiry ON public.credentials USING btree (project_id, expires_at, "row") WHERE (expires_at IS NOT NULL);

CREATE INDEX credentials_listing ON public.credentials USING btree (project_id, created_at DESC, "row" DESC);

CREATE INDEX dead_blobs_age ON public.dead_blobs USING btree (died_at);

CREATE INDEX deleted_messages_age ON public.deleted_messages USING btree (deleted_at);

CREATE INDEX dkim_keys_key ON public.dkim_keys USING btree (key_id);

CREATE INDEX dkim_keys_newest ON public.dkim_keys USING btree (domain, "row" DESC);

CREATE INDEX drafts_listing ON public.drafts USING btree (project_id, created_at DESC, "row" DESC);

CREATE INDEX endpoint_trials_project ON public.endpoint_trials USING btree (project_id);

CREATE INDEX events_age ON public.events USING btree (created_at);

CREATE INDEX hand_refunds_claimed ON public.hand_refunds USING btree (claimed_at) WHERE (state = 'claimed'::text);

CREATE INDEX hand_refunds_payment ON public.hand_refunds USING btree (payment_id, "row");

CREATE INDEX hand_refunds_spent ON public.hand_refunds USING btree (project_id, spent_at, "row") WHERE (state = 'spent'::text);

CREATE INDEX hand_refunds_unfinal ON public.hand_refunds USING btree (block_number) WHERE ((state = 'spent'::text) AND (final_at IS NULL));

CREATE INDEX idempotency_keys_project_age ON public.idempotency_keys USING btree (project_id, created_at);

CREATE INDEX inbound_mails_accepted ON public.inbound_mails USING btree (id) WHERE (state = 'accepted'::text);

CREATE INDEX inbound_mails_ended ON public.inbound_mails USING btree (project_id, received_at) WHERE (state = ANY (ARRAY['retransmission'::text, 'discarded'::text]));

CREATE INDEX inbound_mails_message ON public.inbound_mails USING btree (message_row);

CREATE INDEX inbound_mails_project ON public.inbound_mails USING btree (project_id);

CREATE INDEX mail_domains_listing ON public.mail_domains USING btree (created_at DESC, "row" DESC);

CREATE INDEX mandates_project ON public.mandates USING btree (project_id, created_at DESC, "row" DESC);

CREATE INDEX message_attachments_blob_of ON public.message_attachments USING btree (blob) WHERE (blob IS NOT NULL);

CREATE INDEX message_labels_message ON public.message_labels USING btree (message_row);

CREATE INDEX messages_added ON public.messages USING btree (thread_row, added_at DESC);

CREATE INDEX messages_added_range ON public.messages USING brin (added_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX messages_coded ON public.messages USING btree (project_id, created_at, "row") WHERE (codes <> '[]'::jsonb);

CREATE INDEX messages_invited ON public.messages USING btree (project_id, created_at, "row") WHERE (invites IS NOT NULL);

CREATE INDEX messages_listing ON public.messages USING btree (project_id, created_at DESC, "row" DESC);

CREATE INDEX messages_raw ON public.messages USING btree (raw_id);

CREATE INDEX messages_raw_age ON public.messages USING btree (project_id, created_at) WHERE (raw_id IS NOT NULL);

CREATE UNIQUE INDEX messages_retransmission ON public.messages USING btree (project_id, content_hash) WHERE (direction = 'received'::text);

CREATE INDEX messages_thread ON public.messages USING btree (thread_row, created_at DESC, "row" DESC);

CREATE INDEX messages_unindexed ON public.messages USING btree ("row") WHERE (search IS NULL);

CREATE INDEX mta_sts_policies_expiry ON public.mta_sts_policies USING btree (expires_at);

CREATE INDEX oauth_client_documents_age ON public.oauth_client_documents USING btree (wanted_at);

CREATE INDEX oauth_clients_unused ON public.oauth_clients USING btree (created_at) WHERE (used_at IS NULL);

CREATE INDEX oauth_codes_expiry ON public.oauth_codes USING btree (expires_at);

CREATE INDEX oauth_codes_grant ON public.oauth_codes USING btree (grant_id);

CREATE INDEX oauth_grants_client ON public.oauth_grants USING btree (client_id);

CREATE INDEX oauth_grants_end ON public.oauth_grants USING btree (COALESCE(revoked_at, expires_at));

CREATE INDEX oauth_grants_listing ON public.oauth_grants USING btree (created_at DESC, id DESC);

CREATE INDEX oauth_grants_of_person ON public.oauth_grants USING btree (person_id);

CREATE INDEX oauth_grants_project ON public.oauth_grants USING btree (project_id);

CREATE INDEX oauth_requests_expiry ON public.oauth_requests USING btree (expires_at);

CREATE INDEX oauth_tokens_expiry ON public.oauth_tokens USING btree (expires_at);

CREATE INDEX oauth_tokens_grant ON public.oauth_tokens USING btree (grant_id);

CREATE INDEX outbound_mails_due ON public.outbound_mails USING btree (next_attempt_at) WHERE (state <> 'done'::text);

CREATE INDEX outbound_mails_own_event ON public.outbound_mails USING btree (project_id) WHERE (own_event IS NOT NULL);

CREATE INDEX outbound_recipients_relay ON public.outbound_recipients USING btree (relay_id) WHERE (relay_id IS NOT NULL);

CREATE INDEX own_events_over ON public.own_events USING btree (project_id, over_at);

CREATE INDEX passkey_challenges_expiry ON public.passkey_challenges USING btree (expires_at);

CREATE INDEX passkey_challenges_person ON public.passkey_challenges USING btree (person_id);

CREATE INDEX passkeys_person ON public.passkeys USING btree (person_id);

CREATE INDEX payment_checks_age ON public.payment_checks USING btree (created_at);

CREATE INDEX payments_books ON public.payments USING btree (project_id, settled_at, "row") WHERE (state = 'settled'::text);

CREATE UNIQUE INDEX payments_claim ON public.payments USING btree (chain_id, asset, lower(payer), authorization_nonce);

CREATE INDEX payments_detailed ON public.payments USING btree (project_id, created_at) WHERE (details_removed_at IS NULL);

CREATE INDEX payments_endpoint ON public.payments USING btree (endpoint_id) WHERE (state = 'settled'::text);

CREATE INDEX payments_listing ON public.payments USING btree (project_id, created_at DESC, "row" DESC);

CREATE UNIQUE INDEX payments_payer_identifier ON public.payments USING btree (project_id, payment_identifier, lower(payer)) WHERE ((payment_identifier IS NOT NULL) AND (state <> 'failed'::text));

CREATE INDEX payments_settled_range ON public.payments USING brin (settled_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX payments_unfinalized ON public.payments USING btree (block_number) WHERE ((state = 'settled'::text) AND (finalized_at IS NULL));

CREATE INDEX payments_verified ON public.payments USING btree (created_at) WHERE (state = 'verified'::text);

CREATE INDEX person_projects_project ON public.person_projects USING btree (project_id);

CREATE INDEX project_webhooks_deleted ON public.project_webhooks USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);

CREATE INDEX project_webhooks_key ON public.project_webhooks USING btree (webhook_key_id);

CREATE INDEX project_webhooks_listing ON public.project_webhooks USING btree (project_id, created_at DESC, "row" DESC) WHERE (deleted_at IS NULL);

CREATE INDEX projects_address_bytes ON public.projects USING btree (email_address COLLATE "C") WHERE (deleted_at IS NULL);

CREATE UNIQUE INDEX projects_email_address ON public.projects USING btree (email_address);

CREATE INDEX projects_listing ON public.projects USING btree (created_at DESC, "row" DESC) WHERE (deleted_at IS NULL);

CREATE INDEX projects_pay_to ON public.projects USING btree (lower(pay_to)) WHERE ((deleted_at IS NULL) AND (pay_to IS NOT NULL));

CREATE INDEX projects_unerased ON public.projects USING btree (deleted_at) WHERE ((deleted_at IS NOT NULL) AND (erased_at IS NULL));

CREATE INDEX purchase_mandates_recent ON public.purchase_mandates USING btree (mandate_row, reserved_at);

CREATE INDEX purchases_content ON public.purchases USING btree (content_until) WHERE (key_id IS NOT NULL);

CREATE INDEX purchases_kept ON public.purchases USING btree (project_id) WHERE (key_id IS NOT NULL);

CREATE INDEX purchases_key ON public.purchases USING btree (key_id) WHERE (key_id IS NOT NULL);

CREATE INDEX purchases_open ON public.purchases USING btree (project_id, valid_before) WHERE (money = 'open'::text);

CREATE INDEX purchases_payments ON public.purchases USING btree (project_id, created_at DESC, "row" DESC) WHERE (kind = 'payment'::text);

CREATE INDEX purchases_project ON public.purchases USING btree (project_id, created_at DESC, "row" DESC);

CREATE INDEX purchases_quotes ON public.purchases USING btree (ended_at) WHERE (kind = 'quote'::text);

CREATE INDEX purchases_refunds ON public.purchases USING btree (refund_of) WHERE (refund_of IS NOT NULL);

CREATE INDEX purchases_resource ON public.purchases USING btree (project_id, host, path, "row" DESC) WHERE (money IS NOT NULL);

CREATE INDEX purchases_spent ON public.purchases USING btree (project_id, spent_at, "row") WHERE (money = 'spent'::text);

CREATE INDEX purchases_spent_block ON public.purchases USING btree (payer, block_number) WHERE (money = 'spent'::text);

CREATE INDEX purchases_to_cancel_in_turn ON public.purchases USING btree (project_id, cancel_sent_at NULLS FIRST) WHERE ((money = 'open'::text) AND (cancel_signature IS NOT NULL));

CREATE INDEX purchases_to_send_in_turn ON public.purchases USING btree (project_id, transfer_sent_at NULLS FIRST) WHERE ((money = 'open'::text) AND (transfer_signature IS NOT NULL));

CREATE INDEX purchases_unended ON public.purchases USING btree (created_at) WHERE ((ended_at IS NULL) AND (state <> 'waiting'::text));

CREATE INDEX purchases_unfinal ON public.purchases USING btree (block_number) WHERE ((money = 'spent'::text) AND (final_at IS NULL));

CREATE INDEX purse_keys_key ON public.purse_keys USING btree (key_id);

CREATE INDEX purse_keys_project ON public.purse_keys USING btree (project_id);

CREATE INDEX purses_balance_age ON public.purses USING btree (balance_at NULLS FIRST);

CREATE INDEX raw_mails_blob_of ON public.raw_mails USING btree (blob) WHERE (blob IS NOT NULL);

CREATE INDEX search_segments_checked ON public.search_segments USING btree (checked_at);

CREATE INDEX seller_endpoints_discoverable ON public.seller_endpoints USING btree ("row") WHERE (discoverable AND (deleted_at IS NULL));

CREATE INDEX seller_endpoints_listing ON public.seller_endpoints USING btree (project_id, created_at DESC, "row" DESC);

CREATE INDEX seller_endpoints_plain_secret ON public.seller_endpoints USING btree ("row") WHERE (webhook_secret IS NOT NULL);

CREATE UNIQUE INDEX seller_endpoints_resource ON public.seller_endpoints USING btree (project_id, match_key) WHERE (deleted_at IS NULL);

CREATE INDEX seller_endpoints_sold ON public.seller_endpoints USING btree (match_key) WHERE ((verification_status = 'verified'::text) AND (deleted_at IS NULL));

CREATE INDEX seller_endpoints_webhook_key ON public.seller_endpoints USING btree (webhook_key_id) WHERE (webhook_key_id IS NOT NULL);

CREATE INDEX sign_in_mails_age ON public.sign_in_mails USING btree (created_at);

CREATE INDEX sign_in_mails_email ON public.sign_in_mails USING btree (email, created_at);

CREATE INDEX suppressions_listing ON public.suppressions USING btree (project_id, created_at DESC, "row" DESC);

CREATE INDEX thread_identifiers_thread ON public.thread_identifiers USING btree (thread_row);

CREATE INDEX threads_listing ON public.threads USING btree (project_id, updated_at DESC, "row" DESC);

CREATE INDEX threads_subject ON public.threads USING btree (project_id, subject_key, updated_at DESC) WHERE (subject_key IS NOT NULL);

CREATE INDEX vault_uses_expiry ON public.vault_uses USING btree (expires_at);

CREATE INDEX vault_uses_key ON public.vault_uses USING btree (key_id) WHERE (key_id IS NOT NULL);

CREATE INDEX vault_uses_project ON public.vault_uses USING btree (project_id);

CREATE INDEX wallet_suspensions_code ON public.wallet_suspensions USING btree (chain_id, payer_code);

CREATE INDEX webhook_attempts_ended_range ON public.webhook_attempts USING brin (ended_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX webhook_deliveries_due ON public.webhook_deliveries USING btree (next_attempt_at) WHERE (status = 'pending'::text);

CREATE INDEX webhook_deliveries_endpoint ON public.webhook_deliveries USING btree (endpoint_id, created_at DESC, "row" DESC);

CREATE INDEX webhook_deliveries_listing ON public.webhook_deliveries USING btree (project_id, created_at DESC, "row" DESC);

CREATE INDEX webhook_deliveries_subject ON public.webhook_deliveries USING btree (subject_id);

CREATE INDEX webhook_deliveries_undelivered ON public.webhook_deliveries USING btree (project_id, status, created_at DESC, "row" DESC) WHERE (status <> 'delivered'::text);

CREATE INDEX webhook_deliveries_webhook ON public.webhook_deliveries USING btree (webhook_id, created_at DESC, "row" DESC);

CREATE TRIGGER credential_versions_expiry AFTER INSERT ON credential_versions FOR EACH ROW EXECUTE FUNCTION keep_expiry();

CREATE TRIGGER message_attachments_blob_changed AFTER UPDATE OF blob ON message_attachments FOR EACH ROW WHEN (new.blob IS DISTINCT FROM old.blob) EXECUTE FUNCTION follow_blob();

CREATE TRIGGER message_attachments_blob_left AFTER DELETE ON message_attachments FOR EACH ROW WHEN (old.blob IS NOT NULL) EXECUTE FUNCTION follow_blob();

CREATE TRIGGER message_attachments_blob_named AFTER INSERT ON message_attachments FOR EACH ROW WHEN (new.blob IS NOT NULL) EXECUTE FUNCTION follow_blob();

CREATE TRIGGER messages_labels_added AFTER INSERT ON messages REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION keep_new_labels();

CREATE TRIGGER messages_labels_kept AFTER UPDATE OF labels ON messages FOR EACH ROW EXECUTE FUNCTION keep_message_labels();

CREATE TRIGGER messages_search_added AFTER INSERT ON messages REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION keep_search_pending();

CREATE TRIGGER messages_search_changed AFTER UPDATE OF search ON messages FOR EACH ROW EXECUTE FUNCTION keep_search_changed();

CREATE TRIGGER messages_storage_added AFTER INSERT ON messages REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_storage();

CREATE TRIGGER messages_storage_removed AFTER DELETE ON messages REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_storage();

CREATE TRIGGER raw_mails_blob_changed AFTER UPDATE OF blob ON raw_mails FOR EACH ROW WHEN (new.blob IS DISTINCT FROM old.blob) EXECUTE FUNCTION follow_blob();

CREATE TRIGGER raw_mails_blob_left AFTER DELETE ON raw_mails FOR EACH ROW WHEN (old.blob IS NOT NULL) EXECUTE FUNCTION follow_blob();

CREATE TRIGGER raw_mails_blob_named AFTER INSERT ON raw_mails FOR EACH ROW WHEN (new.blob IS NOT NULL) EXECUTE FUNCTION follow_blob();

CREATE OR REPLACE FUNCTION public.count_storage()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'INSERT' then
    insert into project_storage as s (project_id, bytes)
    select project_id, sum(stored_bytes) from changed group by project_id order by project_id
    on conflict (project_id) do update set bytes = s.bytes + excluded.bytes;
  else
    update project_storage s set bytes = greatest(0, s.bytes - c.bytes)
    from (select project_id, sum(stored_bytes) as bytes from changed group by project_id order by project_id) c
    where s.project_id = c.project_id;
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.follow_blob()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op <> 'INSERT' and old.blob is not null then
    update blobs set idle_since = clock_timestamp() where hash = old.blob;
  end if;
  if tg_op <> 'DELETE' and new.blob is not null then
    update blobs set idle_since = null where hash = new.blob;
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.keep_expiry()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update credentials set expires_at = new.expires_at
  where row = new.credential_row and version = new.version and expires_at is distinct from new.expires_at;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.keep_message_labels()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'UPDATE' then
    delete from message_labels where message_row = new.row and label <> all (new.labels);
  end if;
  insert into message_labels (project_id, label, created_at, message_row)
  select distinct new.project_id, unnest(new.labels), new.created_at, new.row
  on conflict do nothing;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.keep_new_labels()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into message_labels (project_id, label, created_at, message_row)
  select distinct a.project_id, l.label, a.created_at, a.row from added a, unnest(a.labels) l (label)
  on conflict do nothing;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.keep_search_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into search_pending (project_id, created_at, message_row, text_bytes)
  values (new.project_id, new.created_at, new.row, new.text_bytes)
  on conflict (project_id, created_at, message_row) do update set text_bytes = excluded.text_bytes;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.keep_search_pending()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into search_pending (project_id, created_at, message_row, text_bytes)
  select project_id, created_at, row, text_bytes from added;
  perform queue_jobs(array(
    select row('index_search', json_build_object('projectId', looked.project_id), null, null, null,
               'index_search:' || looked.project_id, null, null)::graphile_worker.job_spec
    from (
      select distinct project_id from added where random() < 1.0 / 32 + text_bytes / 524288.0
    ) looked
    where (
      select count(*) >= 240 or sum(text_bytes) >= 2097152
      from (select text_bytes from search_pending p where p.project_id = looked.project_id limit 240) pending
    ) and not exists (select from graphile_worker.jobs where key = 'index_search:' || looked.project_id)
    order by looked.project_id));
  return null;
end $function$;

-- Queues jobs with keys, each for certain. Returns their number.
CREATE OR REPLACE FUNCTION public.queue_jobs(specs graphile_worker.job_spec[], keeps_time boolean DEFAULT false)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  missing graphile_worker.job_spec[] := specs;
begin
  for attempt in 1..10 loop
    if cardinality(missing) = 0 then
      return cardinality(specs);
    end if;
    with added as materialized (
      select key from graphile_worker.add_jobs(missing, keeps_time)
    )
    select coalesce(array_agg(spec), '{}') into missing from unnest(missing) spec
    where spec.job_key not in (select key from added);
  end loop;
  raise exception 'jobs were not queued: %', (select array_agg(distinct identifier) from unnest(missing));
end;
$function$;
