import { Type as t } from '@sinclair/typebox'
import { APPROVAL_STATES, type Approval } from '../../../sql/account/approvals.ts'
import { TRUSTS } from '../../../sql/mail/approval/heldMails.ts'
import type { HeldMail } from '../../../sql/mail/approval/heldReads.ts'
import { Time } from '../../http/operation.ts'
import { WholeMessage } from '../messages/messageDocs.ts'
import { SendBody } from '../outbound/sendInput.ts'

export const State = t.Union(APPROVAL_STATES.map((state) => t.Literal(state)))

const Sha256 = t.String({
  pattern: '^[0-9a-f]{64}$',
  error: 'be a SHA-256 in 64 hexadecimal digits',
  description:
    'The hash is the SHA-256 of the bytes of the mail (RFC 5322, as transmitted after DATA).',
})

/** Describes the body of an approval, which holds the hash of the mail bytes that the owner has seen. */
export const ApproveBody = t.Object({
  sha256: Sha256,
  trust: t.Optional(
    t.Union(
      TRUSTS.map((trust) => t.Literal(trust)),
      {
        default: 'recipients',
        description:
          'Under `approve-new`, further mail to these recipients, to all recipients in their domains, or to none needs no approval.',
      },
    ),
  ),
  seen: t.Optional(
    t.String({
      maxLength: 100,
      description:
        'A signed-in operator proves by this value that all pages were shown. A key needs no such value.',
    }),
  ),
})

export const REASON_MAX_LENGTH = 1_000
export const RejectBody = t.Object({
  reason: t.Optional(
    t.String({
      maxLength: REASON_MAX_LENGTH,
      description: 'The agent reads this reason in `deliveryError`.',
    }),
  ),
})

export const EditBody = t.Object({
  sha256: Sha256,
  subject: t.Optional(SendBody.properties.subject),
  text: t.Optional(SendBody.properties.text),
  html: t.Optional(t.Union([SendBody.properties.text, t.Null()])),
})

const HeldMailSchema = t.Composite([
  t.Pick(WholeMessage, ['messageId', 'threadId', 'from', 'to', 'cc', 'subject', 'text']),
  t.Object({
    bcc: t.Array(t.String()),
    refused: t.Array(t.String(), {
      description:
        'These recipients do not get the mail, because of a rule or of an earlier bounce.',
    }),
  }),
  t.Pick(WholeMessage, ['deliveryStatus', 'sendAt']),
])

const Head = t.Object({
  approvalId: t.String(),
  kind: t.Literal('mail'),
  state: State,
  requestedAt: Time,
  expiresAt: Time,
  decidedAt: t.Union([Time, t.Null()]),
  decidedBy: t.Union([t.String(), t.Null()], {
    description:
      'The field names the prefix of the key, the session of an operator, or a link with its address.',
  }),
  reason: t.Union([t.String(), t.Null()]),
})

/** Describes an approval request for a held mail as it appears in a list. */
const HeldItem = t.Composite([
  Head,
  t.Object({
    message: t.Union([HeldMailSchema, t.Null()], {
      description: 'Null means that the agent deleted the message.',
    }),
  }),
])

/** Describes a whole approval request for a held mail. */
export const HeldRequest = t.Composite([
  Head,
  t.Object({
    sha256: t.Union([t.String(), t.Null()], {
      description:
        'The hash is the SHA-256 of the bytes. An approval names this hash. Null means that the message was deleted.',
    }),
    message: t.Union([
      t.Composite([
        HeldMailSchema,
        t.Object({ html: t.Union([t.String(), t.Null()]) }),
        t.Pick(WholeMessage, ['attachments']),
      ]),
      t.Null(),
    ]),
  }),
])

export const HeldPage = t.Object({
  held: t.Array(HeldItem),
  count: t.Integer(),
  nextPageToken: t.Optional(t.String()),
})

const toHead = (approval: Approval) => ({
  approvalId: approval.id,
  kind: 'mail' as const,
  state: approval.state,
  requestedAt: approval.requestedAt.toISOString(),
  expiresAt: approval.expiresAt.toISOString(),
  decidedAt: approval.decidedAt?.toISOString() ?? null,
  decidedBy: approval.decidedBy,
  reason: approval.reason,
})

const toHeldMail = ({ html: _html, attachments: _files, sendAt, ...mail }: HeldMail) => ({
  ...mail,
  ...(sendAt === null ? {} : { sendAt: sendAt.toISOString() }),
})

/** Returns an approval request in the form in which a list shows it. */
export const toHeldItem = (approval: Approval, mail: HeldMail | undefined) => ({
  ...toHead(approval),
  message: mail === undefined ? null : toHeldMail(mail),
})

/** Returns an approval request with its mail, in the form in which the API returns a single request. */
export const toHeldRequest = (
  approval: Approval,
  mail: HeldMail | undefined,
  hash: Buffer | null,
) => ({
  ...toHead(approval),
  sha256: hash === null ? null : hash.toString('hex'),
  message:
    mail === undefined
      ? null
      : { ...toHeldMail(mail), html: mail.html, attachments: mail.attachments },
})

const EXAMPLE_HEAD = {
  approvalId: 'apr_0a1b2c3d4e5f60718293a4b5',
  kind: 'mail',
  state: 'waiting',
  requestedAt: '2026-01-05T09:30:00.000Z',
  expiresAt: '2026-01-08T09:30:00.000Z',
  decidedAt: null,
  decidedBy: null,
  reason: null,
}
const EXAMPLE_MAIL = {
  messageId: '<9f86d081@mail.example.com>',
  threadId: 'thd_0a1b2c3d4e5f60718293a4b5',
  from: ['agent@mail.example.com'],
  to: ['ada@example.com'],
  cc: [],
  bcc: [],
  subject: 'Offer',
  text: 'Shall I order?',
  refused: [],
  deliveryStatus: 'held',
}

/** Holds an example of a mail that waits for approval, for the documentation. */
export const EXAMPLE_HELD_ITEM = { ...EXAMPLE_HEAD, message: EXAMPLE_MAIL }
export const EXAMPLE_SHA256 = 'c0ffee'.padEnd(64, '0')
export const EXAMPLE_HELD = {
  ...EXAMPLE_HEAD,
  sha256: EXAMPLE_SHA256,
  message: { ...EXAMPLE_MAIL, html: null, attachments: [] },
}
