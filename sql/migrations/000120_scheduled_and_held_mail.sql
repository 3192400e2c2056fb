-- Terminology
--   draft          a mail that somebody is still writing; it is no message yet
--   scheduled mail a sent message that waits for its time
--   approval       a request of a project about which its owner decides; its mail is held until then

-- Holds the time at which the service must send a message. Null means that the service sends it at once.
alter table messages
  add column send_at timestamptz(3),
  drop constraint messages_delivery_status_check,
  -- Mail with the status `scheduled` or `held` waits. The statuses `cancelled`, `rejected` and `expired` mean that the
  -- mail ended without being sent.
  add constraint messages_delivery_status_check check (delivery_status in (
    'queued', 'sent', 'deferred', 'bounced', 'failed', 'scheduled', 'held', 'cancelled', 'rejected', 'expired')) not valid;

alter table outbound_mails
  -- Holds the SHA-256 of the bytes that the owner approved. Null means that nobody had to approve the mail.
  add column approved_hash bytea,
  drop constraint outbound_mails_state_check,
  -- The state `held` means that the service makes no delivery attempt before an approval.
  add constraint outbound_mails_state_check check (state in ('queued', 'deferred', 'done', 'held')) not valid;

alter table projects
  -- With the policy `free`, the service sends mail at once. With `approve`, each mail waits for the owner. With
  -- `approve-new`, only the first mail to a recipient waits.
  add column send_policy text not null default 'free',
  -- Holds the owner's address for notifications. Null means that the owner gets no notifications.
  add column approver_email text,
  -- Holds the number of hours after which an undecided approval request expires.
  add column approval_hours integer not null default 72,
  add constraint projects_send_policy_check check (send_policy in ('free', 'approve', 'approve-new')) not valid;

-- Holds the mails that somebody is still writing. The column `content` holds the body of a send or reply call, without
-- the attachments.
create table drafts (
  row bigint generated always as identity unique,
  id text primary key,
  project_id text not null references projects on delete cascade,
  -- Counts the changes of the draft. A call that sends the draft sends exactly the version that it has read.
  version integer not null default 1,
  content jsonb not null,
  attachments jsonb not null default '[]',
  stored_bytes bigint not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  updated_at timestamptz(3) not null default clock_timestamp()
);
create index drafts_listing on drafts (project_id, created_at desc, row desc);

-- Holds the requests that an owner decides. The column `kind` names the part of the service that asks. The column
-- `subject` names the object of the request, which for a mail is the Message-ID.
create table approvals (
  row bigint generated always as identity unique,
  id text primary key,
  project_id text not null references projects on delete cascade,
  kind text not null check (kind in ('mail')),
  subject text not null,
  state text not null default 'waiting' check (state in ('waiting', 'approved', 'rejected', 'withdrawn', 'expired')),
  -- Holds the SHA-256 of the content that the owner sees. Null means that this content does not exist yet. An edit of
  -- the content changes the hash.
  content_hash bytea check (octet_length(content_hash) = 32),
  requested_at timestamptz(3) not null default clock_timestamp(),
  expires_at timestamptz(3) not null,
  -- Holds the time at which the approval request was announced by its event and its notification.
  announced_at timestamptz(3),
  -- Holds the time at which the notification mail was handed to a mail host, or was given up.
  notified_at timestamptz(3),
  -- Counts the attempts to send the notification mail.
  notice_attempts integer not null default 0,
  decided_at timestamptz(3),
  -- Names who decided: the prefix of a key, a console session, or an approval link with its address.
  decided_by text,
  reason text
);
-- The index allows only one approval request for each object.
create unique index approvals_subject on approvals (project_id, kind, subject);
create index approvals_listing on approvals (project_id, requested_at desc, row desc);
create index approvals_waiting on approvals (project_id, requested_at desc, row desc) where state = 'waiting';

-- Holds the links of notification mails. Each link decides one request, and only once. The table holds only the hash of
-- the link's token.
create table approval_links (
  token_hash bytea primary key check (octet_length(token_hash) = 32),
  approval_id text not null references approvals on delete cascade,
  address text not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  used_at timestamptz(3)
);
create index approval_links_approval on approval_links (approval_id);

-- Holds the recipients to whom a project may send mail under approve-new: an address in lower case, or @ and a domain.
create table known_recipients (
  project_id text not null references projects on delete cascade,
  recipient text not null,
  since timestamptz(3) not null default clock_timestamp(),
  primary key (project_id, recipient)
);
