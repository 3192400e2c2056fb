-- Terminology
--   draft          a mail that is being written; no message yet
--   scheduled mail a sent message that waits for its time
--   approval       a request of a project that its owner decides; the mail behind it is held until then

-- The time at which a message is to leave; null: at once.
alter table messages
  add column send_at timestamptz(3),
  drop constraint messages_delivery_status_check,
  -- scheduled and held wait; cancelled, rejected and expired are ends without a sending.
  add constraint messages_delivery_status_check check (delivery_status in (
    'queued', 'sent', 'deferred', 'bounced', 'failed', 'scheduled', 'held', 'cancelled', 'rejected', 'expired')) not valid;

alter table outbound_mails
  -- SHA-256 of the bytes that the owner approved; null: nobody had to.
  add column approved_hash bytea,
  drop constraint outbound_mails_state_check,
  -- held: no attempt before an approval.
  add constraint outbound_mails_state_check check (state in ('queued', 'deferred', 'done', 'held')) not valid;

alter table projects
  -- free: mail leaves at once. approve: each mail waits for the owner. approve-new: the first mail to a recipient does.
  add column send_policy text not null default 'free',
  -- The owner's address for notifications; null: none.
  add column approver_email text,
  -- The hours after which an undecided request expires.
  add column approval_hours integer not null default 72,
  add constraint projects_send_policy_check check (send_policy in ('free', 'approve', 'approve-new')) not valid;

-- Mails that are being written. `content` is the body of send or reply, without the attachments.
create table drafts (
  row bigint generated always as identity unique,
  id text primary key,
  project_id text not null references projects on delete cascade,
  -- Counts the changes: a sending takes the version that was read.
  version integer not null default 1,
  content jsonb not null,
  attachments jsonb not null default '[]',
  stored_bytes bigint not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  updated_at timestamptz(3) not null default clock_timestamp()
);
create index drafts_listing on drafts (project_id, created_at desc, row desc);

-- Requests that an owner decides. `kind` names the part of the service that asks, `subject` its object: for mail, the
-- Message-ID.
create table approvals (
  row bigint generated always as identity unique,
  id text primary key,
  project_id text not null references projects on delete cascade,
  kind text not null check (kind in ('mail')),
  subject text not null,
  state text not null default 'waiting' check (state in ('waiting', 'approved', 'rejected', 'withdrawn', 'expired')),
  -- SHA-256 of the thing as the owner sees it; null: not made yet. An edit changes it.
  content_hash bytea check (octet_length(content_hash) = 32),
  requested_at timestamptz(3) not null default clock_timestamp(),
  expires_at timestamptz(3) not null,
  -- The request was announced: event and notification.
  announced_at timestamptz(3),
  -- The notification mail was handed over, or given up.
  notified_at timestamptz(3),
  -- Attempts of the notification mail.
  notice_attempts integer not null default 0,
  decided_at timestamptz(3),
  -- The prefix of the deciding key, a console session, or a link with its address.
  decided_by text,
  reason text
);
-- An object has one request.
create unique index approvals_subject on approvals (project_id, kind, subject);
create index approvals_listing on approvals (project_id, requested_at desc, row desc);
create index approvals_waiting on approvals (project_id, requested_at desc, row desc) where state = 'waiting';

-- Links of notification mails. Each decides one request once; only the hash of its token is stored.
create table approval_links (
  token_hash bytea primary key check (octet_length(token_hash) = 32),
  approval_id text not null references approvals on delete cascade,
  address text not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  used_at timestamptz(3)
);
create index approval_links_approval on approval_links (approval_id);

-- Recipients that a project may write to under approve-new: an address in lower case, or @ and a domain.
create table known_recipients (
  project_id text not null references projects on delete cascade,
  recipient text not null,
  since timestamptz(3) not null default clock_timestamp(),
  primary key (project_id, recipient)
);
