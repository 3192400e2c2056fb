/** Stores rows of mail in a test database with the functions of the service. */

import { randomUUID } from 'node:crypto'
import { newMessageId } from '../../../shared/ids.ts'
import { INTERNAL } from '../../../shared/mail/parse/authentication.ts'
import { parseMail } from '../../../shared/mail/parse/parseMail.ts'
import { indexed } from '../../../shared/mail/search/indexedMail.ts'
import type { Pool } from '../../../sql/db.ts'
import {
  findInboundMail,
  insertInboundMails,
  type SpooledMail,
} from '../../../sql/mail/inbound/inboundMails.ts'
import {
  type AuthenticatedMail,
  type StoreOutcome,
  storeParsedMails,
} from '../../../sql/mail/inbound/storeParsedMails.ts'
import { acceptIntents } from '../../../sql/mail/outbound/acceptIntents.ts'
import { type AttemptOutcome, recordMailAttempts } from '../../../sql/mail/outbound/mailAttempts.ts'
import { beginAttempts, type OutboundMail } from '../../../sql/mail/outbound/outboundMails.ts'
import type { SendIntent } from '../../../sql/mail/outbound/sendIntents.ts'
import { noBlobs } from '../database/blobs.ts'
import { newProject } from '../till/tillRows.ts'

const DOMAIN = 'mail.test'

export const newIntent = (projectId: string, changes: Partial<SendIntent> = {}): SendIntent => ({
  projectId,
  messageId: newMessageId(DOMAIN),
  threadRow: null,
  from: `agent@${DOMAIN}`,
  to: ['ada@example.com'],
  cc: [],
  bcc: [],
  subject: 'Subject',
  text: 'Text',
  html: null,
  inReplyTo: [],
  references: [],
  attachments: [],
  unsubscribe: null,
  headers: null,
  names: null,
  sendAt: null,
  draft: null,
  held: false,
  refused: [],
  key: null,
  answer: {},
  ...changes,
})

export type SentRow = { projectId: string; messageId: string; row: string; threadRow: string }

/** Stores an outbound mail that waits to be sent. */
export async function newSent(pool: Pool, changes: Partial<SendIntent> = {}): Promise<SentRow> {
  const intent = newIntent(changes.projectId ?? (await newProject(pool)), changes)
  const [outcome] = await acceptIntents(pool, [intent], null)
  if (outcome!.kind !== 'accepted') throw new Error(outcome!.kind)
  const { projectId, messageId } = intent
  return { projectId, messageId, ...(await messageOf(pool, projectId, messageId))! }
}

/** Finds the database rows of a message and its thread. */
export async function messageOf(pool: Pool, projectId: string, messageId: string) {
  const { rows } = await pool.query<{ row: string; threadRow: string }>(
    'select row, thread_row as "threadRow" from messages where project_id = $1 and message_id = $2',
    [projectId, messageId],
  )
  return rows[0]
}

/** Begins an attempt to send an outbound mail, which must be due. */
export async function begin(pool: Pool, { row }: { row: string }): Promise<OutboundMail> {
  const [mail] = await beginAttempts(pool, [row])
  if (mail == null) throw new Error('no attempt is due')
  return mail
}

/**
 * Records a sending attempt in which every due recipient got the mail. The values in `changes` replace fields of the
 * record.
 */
export async function recordSent(
  pool: Pool,
  mail: OutboundMail,
  changes: Partial<AttemptOutcome> = {},
): Promise<boolean> {
  const outcome: AttemptOutcome = {
    messageRow: mail.messageRow,
    projectId: mail.projectId,
    attempt: mail.attempt,
    rawId: null,
    envelopeFrom: mail.fromAddress,
    recipients: mail.due.map(({ address }) => ({
      address,
      state: 'sent',
      error: null,
      nextAttemptAt: null,
    })),
    localInboxes: [],
    last: true,
    ...changes,
  }
  const [recorded] = await recordMailAttempts(pool, [outcome])
  return recorded!
}

/** Reads the recipients of a message, sorted by their addresses. */
export async function recipientsOf(pool: Pool, { row }: { row: string }) {
  const { rows } = await pool.query<{
    address: string
    state: string
    error: string | null
    attempts: number
  }>(
    `select address, state, error, attempts from outbound_recipients where message_row = $1 order by address`,
    [row],
  )
  return rows
}

let mails = 0

/** Returns the text of a raw message with CRLF line ends. */
export const rawMail = ({
  id = `m${++mails}@example.com`,
  from = 'ada@example.com',
  to = `agent@${DOMAIN}`,
  subject = 'Subject',
  headers = '',
  text = `Text ${++mails}`,
}: Partial<Record<'id' | 'from' | 'to' | 'subject' | 'headers' | 'text', string>> = {}): string =>
  `From: ${from}\r\nTo: ${to}\r\nSubject: ${subject}\r\nMessage-ID: <${id}>\r\n${headers}\r\n${text}\r\n`

export async function addressOf(pool: Pool, projectId: string): Promise<string> {
  const { rows } = await pool.query('select email_address from projects where id = $1', [projectId])
  return rows[0].email_address
}

export const spooled = (
  addresses: readonly string[],
  raw = rawMail(),
  changes: Partial<SpooledMail> = {},
): SpooledMail => ({
  sourceKey: randomUUID(),
  bytes: Buffer.from(raw),
  envelopeFrom: 'ada@example.com',
  inboxes: addresses.map((address) => ({ address, envelopeTo: address })),
  remoteIp: '192.0.2.1',
  helo: 'example.com',
  receivedAt: new Date(),
  ...changes,
})

/** Inserts an inbound mail for each project. @returns the ids of the mails in the order of the projects */
export async function takeIn(
  pool: Pool,
  projectIds: readonly string[],
  raw = rawMail(),
  changes: Partial<SpooledMail> = {},
): Promise<string[]> {
  const addresses = await Promise.all(projectIds.map((id) => addressOf(pool, id)))
  const mail = spooled(addresses, raw, changes)
  await insertInboundMails(pool, [mail])
  const { rows } = await pool.query<{ id: string }>(
    `select i.id from inbound_mails i join raw_mails r on r.id = i.raw_id
     where r.source_key = $1 order by array_position($2::text[], i.project_id)`,
    [mail.sourceKey, projectIds],
  )
  return rows.map(({ id }) => id)
}

/** Reads and parses an inbound mail, as the worker does. */
export async function readInboundMail(pool: Pool, inboundId: string): Promise<AuthenticatedMail> {
  const inbound = await findInboundMail(pool, noBlobs, inboundId, 1e9)
  if (inbound === null || !('bytes' in inbound)) throw new Error('no such inbound mail')
  const parsed = indexed(await parseMail(inbound.bytes, DOMAIN), inbound.projectId)
  return { inbound, ...parsed, authentication: INTERNAL }
}

/** Inserts, parses and stores a message for one project. */
export async function receive(
  pool: Pool,
  projectId: string,
  raw = rawMail(),
  changes: Partial<SpooledMail> = {},
): Promise<{ outcome: StoreOutcome; messageId: string; rawId: string }> {
  const [id] = await takeIn(pool, [projectId], raw, changes)
  const received = await readInboundMail(pool, id!)
  const [outcome] = await storeParsedMails(pool, [received])
  return {
    outcome: outcome!,
    messageId: received.mail.links.messageId,
    rawId: received.inbound.rawId,
  }
}

/** Reads the types of the webhook events of a project, in the order of the events. */
export async function eventsOf(pool: Pool, projectId: string): Promise<string[]> {
  const { rows } = await pool.query('select type from events where project_id = $1 order by seq', [
    projectId,
  ])
  return rows.map(({ type }) => type)
}

/** Reads a raw mail as text. @returns undefined after the mail is removed */
export async function readRaw(pool: Pool, rawId: string): Promise<string | undefined> {
  const { rows } = await pool.query('select bytes from raw_mails where id = $1', [rawId])
  return rows[0]?.bytes.toString()
}
