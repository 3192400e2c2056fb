/** Records the texts that a worker has read from the attachments of a message. */
import type { Logger } from 'pino'
import { errorCode } from '../../../shared/errorCode.ts'
import type { AttachmentRead, InviteNotice } from '../../../shared/events/events.ts'
import { messageWithin } from '../../../shared/events/messageWithin.ts'
import type { ReadInvite } from '../../../shared/mail/calendar/invite.ts'
import type { Code } from '../../../shared/mail/codes/codes.ts'
import { CODES_MAX } from '../../../shared/mail/codes/codes.ts'
import { LINKS_MAX, type MailLink } from '../../../shared/mail/codes/links/mailLinks.ts'
import type { AttachmentState } from '../../../shared/mail/parse/parseMail.ts'
import { isRefusedRow } from '../../../shared/process/databaseAway.ts'
import { type Client, type Pool, type Queryable, transaction } from '../../db.ts'
import { type NewEvent, recordEvents } from '../../events/events.ts'
import type { AppliedInvite } from '../calendar/applyInvites.ts'
import { recordInvites } from '../calendar/messageInvites.ts'
import { queueSearchable } from './attachmentTexts.ts'
import { describedWithTexts } from './describedTexts.ts'
import { readMessageEvents } from './messageEvents.ts'

/** Holds the result of reading one attachment: its text, or the reason why it has no text. */
export type TextOutcome = {
  messageRow: string
  attachmentId: string
  state: Exclude<AttachmentState, 'pending'>
  kind: string | null
  reason: string | null
  text: string | null
  omitted: readonly string[]
  codes: readonly Code[]
  links: readonly MailLink[]
  invites: readonly ReadInvite[]
  /**
   * Holds the label that the message gets if the attachment conceals words. Null means that the attachment conceals no
   * words.
   */
  label: string | null
  bytes: number
  cpuMs: number
}

/**
 * Records the texts that a worker process read from attachments of one message, together with the webhook events. A
 * second call for the same attachment changes nothing. After the last text of a message, the transaction also queues a
 * job, which makes the texts searchable if the present run dies. If the database refuses the values of an attachment,
 * the attachment fails for good. Otherwise every new attempt would meet the same refusal, and the project's other
 * attachments would never be read.
 * @returns true if the service has now read every attachment of the message.
 */
export async function recordTexts(
  pool: Pool,
  projectId: string,
  outcomes: readonly TextOutcome[],
  log?: Pick<Logger, 'error'>,
): Promise<boolean> {
  try {
    return await recordTogether(pool, projectId, outcomes)
  } catch (error) {
    if (!isRefusedRow(error)) throw error
  }
  let isLast = false
  for (const outcome of outcomes) isLast = await recordAlone(pool, projectId, outcome, log)
  return isLast
}

/**
 * Records the text of one attachment after the database has refused a batch of texts, because another attachment may
 * have caused the refusal. If the database refuses the text again, the attachment fails. The log does not contain
 * PostgreSQL's message, because it may quote the mail.
 */
async function recordAlone(
  pool: Pool,
  projectId: string,
  outcome: TextOutcome,
  log: Pick<Logger, 'error'> | undefined,
): Promise<boolean> {
  try {
    return await recordTogether(pool, projectId, [outcome])
  } catch (error) {
    if (!isRefusedRow(error)) throw error
    const { messageRow, attachmentId } = outcome
    log?.error({ messageRow, attachmentId, sqlState: errorCode(error) }, 'attachment not recorded')
    return await recordTogether(pool, projectId, [unreadable(outcome)])
  }
}

const unreadable = (outcome: TextOutcome): TextOutcome => ({
  ...outcome,
  ...{ state: 'failed', reason: 'malformed', text: null },
  ...{ omitted: [], codes: [], links: [], invites: [] },
})

const recordTogether = (pool: Pool, projectId: string, outcomes: readonly TextOutcome[]) =>
  transaction(pool, async (db) => {
    const { messageRow } = outcomes[0]!
    const labels = await lockMessage(db, messageRow)
    const added = await storeTexts(db, messageRow, outcomes)
    const found = added.length === 0 ? null : await recordFound(db, projectId, { added, labels })
    const { rows } = await db.query<Progress>({
      name: 'count-texts',
      text: `select count(*)::int as files, (count(*) filter (where state = 'pending'))::int as waiting
             from attachment_texts where message_row = $1`,
      values: [messageRow],
    })
    const progress = rows[0]!
    const isLast = progress.waiting === 0
    if (found !== null) {
      if (isLast) {
        await describe(db, messageRow)
        await queueSearchable(db, projectId, messageRow)
      }
      // The function records the events at the end of the transaction, because `recordEvents` keeps the project's event
      // stream locked until the commit.
      await recordEvents(db, await eventsOf(db, messageRow, { found, files: progress.files }))
    }
    return isLast
  })

type Progress = { files: number; waiting: number }
/** Holds a newly recorded attachment, and the number of characters that its text added to the message. */
type Added = { outcome: TextOutcome; chars: number }
type Found = Added & { gainedCode: boolean; invites: AppliedInvite[] }

/** Stores the texts of attachments. @returns the attachments that had no recorded text yet. */
async function storeTexts(
  db: Client,
  messageRow: string,
  outcomes: readonly TextOutcome[],
): Promise<Added[]> {
  const all = outcomes.map((outcome) => ({
    outcome,
    chars: outcome.text === null ? 0 : charsOf(outcome.text),
  }))
  const column = <Key extends keyof TextOutcome>(key: Key) => outcomes.map((one) => one[key])
  const { rows } = await db.query<{ id: string }>({
    name: 'record-attachment-texts',
    text: `update attachment_texts x
           set state = g.state, kind = g.kind, reason = g.reason, content = g.content, chars = g.chars,
               omitted = array(select jsonb_array_elements_text(g.omitted)), read_at = clock_timestamp(),
               claimed_at = null
           from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int[], $8::jsonb[])
             g (id, state, kind, reason, content, chars, omitted)
           where x.message_row = $1 and x.attachment_id = g.id and x.state = 'pending'
           returning x.attachment_id as id`,
    values: [
      messageRow,
      column('attachmentId'),
      column('state'),
      column('kind'),
      column('reason'),
      column('text'),
      all.map(({ chars }) => chars),
      outcomes.map(({ omitted }) => JSON.stringify(omitted)),
    ],
  })
  const ids = new Set(rows.map(({ id }) => id))
  return all.filter(({ outcome }) => ids.has(outcome.attachmentId))
}

/**
 * Records the consequences of attachments' texts: the daily sums, the labels, one-time codes, links and calendar
 * invitations.
 */
async function recordFound(
  db: Client,
  projectId: string,
  { added, labels }: { added: readonly Added[]; labels: readonly string[] },
): Promise<Found[]> {
  const outcomes = added.map(({ outcome }) => outcome)
  const { messageRow } = outcomes[0]!
  await countReading(db, projectId, outcomes)
  await addLabels(db, messageRow, { outcomes, labels })
  const firstCode = await addFound(db, messageRow, outcomes)
  const found: Found[] = []
  for (const one of added) {
    found.push({
      ...one,
      gainedCode: one.outcome === firstCode,
      invites: await recordInvites(db, messageRow, one.outcome.invites),
    })
  }
  return found
}

/**
 * Counts the code points of a text, because the PostgreSQL function `substr` also counts code points when it reads a
 * page of the text.
 */
function charsOf(text: string): number {
  let chars = 0
  for (const _ of text) chars++
  return chars
}

/**
 * Locks a message before the rows of its attachments, in the same order as a deletion. If two transactions record the
 * last attachments at the same time, the second one sees that no attachment waits any more. @returns the labels.
 */
async function lockMessage(db: Client, messageRow: string): Promise<readonly string[]> {
  const { rows } = await db.query<{ labels: string[] }>({
    name: 'lock-labels',
    text: 'select labels from messages where row = $1 for no key update',
    values: [messageRow],
  })
  return rows[0]?.labels ?? []
}

/** Adds a label to a message whose attachments conceal words. */
async function addLabels(
  db: Client,
  messageRow: string,
  { outcomes, labels }: { outcomes: readonly TextOutcome[]; labels: readonly string[] },
): Promise<void> {
  const given = new Set(outcomes.flatMap(({ label }) => label ?? []))
  const fresh = [...given].filter((label) => !labels.includes(label))
  if (fresh.length === 0) return
  await db.query({
    name: 'add-text-labels',
    text: 'update messages set labels = labels || $2::text[] where row = $1',
    values: [messageRow, fresh],
  })
}

/**
 * Copies the states of a message's attachments into their stored descriptions, after the last attachment is read. A
 * copy after each attachment wrote 900 MB of WAL for a mail of 1 MB with 1,000 attachments.
 */
const describe = (db: Queryable, messageRow: string) =>
  db.query({
    name: 'describe-attachment-texts',
    text: `update messages m set attachments = ${describedWithTexts('m')} where row = $1`,
    values: [messageRow],
  })

/**
 * Adds the one-time codes and links of attachments to those of their message. A list that does not grow is not written
 * again, because a list of links may have 100 KB.
 * @returns the attachment that holds the first code of the message, or null.
 */
async function addFound(
  db: Client,
  messageRow: string,
  outcomes: readonly TextOutcome[],
): Promise<TextOutcome | null> {
  if (outcomes.every(({ codes, links }) => codes.length === 0 && links.length === 0)) return null
  const { rows } = await db.query<{ codes: Code[] | null; links: MailLink[] | null }>({
    name: 'read-found',
    text: 'select codes, links from messages where row = $1',
    values: [messageRow],
  })
  const row = rows[0]!
  const codes = [...(row.codes ?? [])]
  const links = [...(row.links ?? [])]
  const values = new Set(codes.map(({ value }) => value))
  const hrefs = new Set(links.map(({ href }) => href))
  let first: TextOutcome | null = null
  for (const outcome of outcomes) {
    const { attachmentId } = outcome
    const fresh = outcome.codes.filter(({ value }) => !values.has(value))
    if (codes.length === 0 && fresh.length > 0) first = outcome
    codes.push(...fresh.map((code) => ({ ...code, part: 'attachment' as const, attachmentId })))
    links.push(...outcome.links.filter(({ href }) => !hrefs.has(href)))
    for (const { value } of fresh) values.add(value)
    for (const { href } of outcome.links) hrefs.add(href)
  }
  const columns = [
    { name: 'codes', kept: codes.slice(0, CODES_MAX), known: row.codes },
    { name: 'links', kept: links.slice(0, LINKS_MAX), known: row.links },
  ]
  for (const { name, kept, known } of columns) {
    if (known !== null && kept.length <= known.length) continue
    await db.query({
      name: `add-found-${name}`,
      text: `update messages set ${name} = $2 where row = $1`,
      values: [messageRow, JSON.stringify(kept)],
    })
  }
  return first
}

/**
 * Limits the bytes of sender, recipients and subject in all events about one message's attachments. This limit is the
 * sum of `EVENTS_BYTES` and `EVENTS_SHARE` times the bytes of the mail. Without it, a mail of 78 KB made 36 MB of
 * events.
 */
const EVENTS_BYTES = 32_000
const EVENTS_SHARE = 2

async function eventsOf(
  db: Queryable,
  messageRow: string,
  { found, files }: { found: readonly Found[]; files: number },
): Promise<NewEvent[]> {
  const [event] = await readMessageEvents(db, [messageRow])
  const { projectId, traceparent, isSent, storedBytes, data: whole } = event!
  // If the project itself sent the mail with this attachment, the project gets no webhook event.
  if (isSent) return []
  const data = messageWithin(whole, (EVENTS_BYTES + EVENTS_SHARE * storedBytes) / files)
  return found.flatMap(({ outcome: { attachmentId, state }, chars, gainedCode, invites }) => {
    const attachment: AttachmentRead = { attachmentId, state, chars }
    return [
      { projectId, type: 'attachment.read' as const, data: { ...data, attachment }, traceparent },
      ...(invites.length > 0
        ? [
            {
              projectId,
              type: 'message.invite' as const,
              data: { ...data, invites: invites.map(noticeOf) },
              traceparent,
            },
          ]
        : []),
      ...(gainedCode
        ? [{ projectId, type: 'message.code' as const, data: whole, traceparent }]
        : []),
    ]
  })
}

const noticeOf = ({ uid, recurrenceId, method, effect }: AppliedInvite): InviteNotice => ({
  uid,
  recurrenceId,
  method,
  effect,
})

/** Adds the bytes and the processor time of reading attachments to the project's sums for the present UTC day. */
const countReading = (db: Queryable, projectId: string, outcomes: readonly TextOutcome[]) =>
  db.query({
    name: 'count-reading',
    text: `insert into attachment_reading as r (project_id, day, bytes, cpu_ms)
           select id, (clock_timestamp() at time zone 'UTC')::date, $2, $3 from projects where id = $1 and deleted_at is null
           on conflict (project_id) do update set day = excluded.day,
             bytes = excluded.bytes + case when r.day = excluded.day then r.bytes else 0 end,
             cpu_ms = excluded.cpu_ms + case when r.day = excluded.day then r.cpu_ms else 0 end`,
    values: [
      projectId,
      outcomes.reduce((sum, { bytes }) => sum + bytes, 0),
      outcomes.reduce((sum, { cpuMs }) => sum + Math.ceil(cpuMs), 0),
    ],
  })
