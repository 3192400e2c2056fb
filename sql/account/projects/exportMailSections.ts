/** Names the tables and columns of mail that a project's export contains. */
import { currentAttachments } from '../../mail/messages/describedTexts.ts'
import { byAge, type Section } from './exportSection.ts'

/** Describes the first section of a project's export. */
export const MESSAGES: Section = {
  kind: 'message',
  from: 'messages x join threads t on t.row = x.thread_row',
  order: byAge('created_at'),
  fields: {
    messageId: 'x.message_id',
    threadId: 't.id',
    direction: 'x.direction',
    from: 'x.from_addresses',
    to: 'x.to_addresses',
    cc: 'x.cc_addresses',
    bcc: 'x.bcc_addresses',
    replyTo: 'x.reply_to_addresses',
    inReplyTo: 'x.in_reply_to',
    references: 'x.reference_ids',
    subject: 'x.subject',
    text: 'x.text_body',
    extractedText: 'x.extracted_text',
    html: 'x.html_body',
    attachments: currentAttachments('x'),
    labels: 'x.labels',
    deliveryStatus: 'x.delivery_status',
    deliveryError: 'x.delivery_error',
    recipients: `case when x.direction = 'sent' then (
      select json_agg(json_build_object('address', r.address, 'state', r.state, 'error', r.error,
        'attempts', r.attempts, 'updatedAt', r.updated_at, 'complainedAt', r.complained_at) order by r.address)
      from outbound_recipients r where r.message_row = x.row) end`,
    sendAt: 'x.send_at',
    authentication: 'x.authentication',
    codes: 'x.codes',
    links: 'x.links',
    invites: 'x.invites',
    originalIsKept: 'x.raw_id is not null',
    createdAt: 'x.created_at',
  },
}

/**
 * Lists the sections of an export that hold the project's mail and calendar, except the messages. They follow the
 * messages in the export.
 */
export const MAIL_SECTIONS: readonly Section[] = [
  {
    kind: 'thread',
    from: 'threads x',
    order: byAge('updated_at'),
    fields: {
      threadId: 'x.id',
      subject: 'x.subject',
      messageCount: 'x.message_count',
      createdAt: 'x.created_at',
      updatedAt: 'x.updated_at',
    },
  },
  {
    kind: 'emailRule',
    from: 'email_rules x',
    order: byAge('created_at'),
    fields: {
      ruleId: 'x.id',
      type: 'x.type',
      scope: 'x.scope',
      value: 'x.value',
      createdAt: 'x.created_at',
    },
  },
  {
    kind: 'suppression',
    from: 'suppressions x',
    order: byAge('created_at'),
    fields: {
      address: 'x.address',
      reason: 'x.reason',
      detail: 'x.detail',
      messageId: 'x.message_id',
      createdAt: 'x.created_at',
    },
  },
  {
    kind: 'draft',
    from: 'drafts x',
    order: byAge('created_at'),
    // Each query reads only one draft, because all drafts of a project together may have 100 MB.
    page: 1,
    fields: {
      draftId: 'x.id',
      version: 'x.version',
      content: 'x.content',
      attachments: 'x.attachments',
      createdAt: 'x.created_at',
      updatedAt: 'x.updated_at',
    },
  },
  {
    kind: 'event',
    from: 'calendar_events x',
    order: { 'x.uid_hash': 'bytea', 'x.organizer': 'text', 'x.instance': 'timestamptz' },
    // A page holds only 50 calendar events, because a calendar event can have 100 KB of text and attendees.
    page: 50,
    fields: {
      invite: 'x.invite',
      status: 'x.status',
      answer: 'x.answer',
      isOwn: 'x.is_own',
      isProven: 'x.is_proven',
      updatedAt: 'x.updated_at',
    },
  },
  {
    kind: 'eventAnswer',
    from: `calendar_events x join calendar_answers a on a.event_row = x.row`,
    order: {
      'x.uid_hash': 'bytea',
      'x.organizer': 'text',
      'x.instance': 'timestamptz',
      'a.instance': 'timestamptz',
      'a.address': 'text',
    },
    // The condition names columns of only one table, so that PostgreSQL finds the first calendar event of a page by an
    // index. An index cannot give rows in the order of columns of two tables.
    condition:
      'and (x.uid_hash, x.organizer, x.instance) >= ($2::bytea, $3::text, $4::timestamptz)',
    fields: {
      uid: `x.invite ->> 'uid'`,
      address: 'a.address',
      recurrenceId: `nullif(a.instance, '-infinity')`,
      state: 'a.state',
      comment: 'a.comment',
      answeredAt: 'a.stamp',
    },
  },
  {
    kind: 'ownEvent',
    from: 'own_events x',
    order: { 'x.uid_hash': 'bytea' },
    page: 50,
    fields: { sequence: 'x.sequence', event: 'x.event' },
  },
  {
    kind: 'attachmentText',
    from: 'attachment_texts x join messages m on m.row = x.message_row',
    order: { 'x.message_row': 'bigint', 'x.attachment_id': 'text' },
    // The export leaves out unread attachments here, because the row of their message already holds their state.
    condition: `and x.state = 'ready'`,
    // A page holds only four rows, because the texts of one attachment can have a million characters.
    page: 4,
    fields: {
      messageId: 'm.message_id',
      attachmentId: 'x.attachment_id',
      of: 'x.kind',
      text: 'x.content',
      readAt: 'x.read_at',
    },
  },
  {
    kind: 'knownRecipient',
    from: 'known_recipients x',
    order: { 'x.recipient': 'text' },
    fields: { recipient: 'x.recipient', since: 'x.since' },
  },
  {
    kind: 'approval',
    from: 'approvals x',
    order: byAge('requested_at'),
    fields: {
      approvalId: 'x.id',
      of: 'x.kind',
      messageId: 'x.subject',
      state: 'x.state',
      reason: 'x.reason',
      decidedBy: 'x.decided_by',
      requestedAt: 'x.requested_at',
      expiresAt: 'x.expires_at',
      decidedAt: 'x.decided_at',
    },
  },
]
