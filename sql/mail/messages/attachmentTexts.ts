import type { AttachmentRead, InviteNotice } from '../../../shared/events/events.ts'
import type { ReadInvite } from '../../../shared/mail/calendar/invite.ts'
import type { Code } from '../../../shared/mail/codes/codes.ts'
import { CODES_MAX } from '../../../shared/mail/codes/codes.ts'
import { LINKS_MAX, type MailLink } from '../../../shared/mail/codes/mailLinks.ts'
import type { AttachmentState } from '../../../shared/mail/parse/parseMail.ts'
import { type Client, type Pool, type Queryable, transaction } from '../../db.ts'
import { type NewEvent, recordEvents } from '../../events/events.ts'
import { addJob } from '../../queue/jobs.ts'
import type { AppliedInvite } from '../calendar/applyInvites.ts'
import { recordInvites } from '../calendar/messageInvites.ts'
import { readMessageEvents } from './messageEvents.ts'

/**
 * Queues a job that reads the attachments of a project. The database rows of the project tell the job which attachments
 * the job must still read.
 */
export const queueReading = (
  db: Queryable,
  projectId: string,
  { runAt, priority = 0 }: { runAt?: Date; priority?: number } = {},
): Promise<void> =>
  addJob(db, {
    task: 'read_attachments',
    payload: { projectId },
    key: `read_attachments:${projectId}`,
    priority,
    ...(runAt === undefined ? {} : { runAt, keepsTime: true }),
  })

/**
 * After this number of seconds, another run makes the texts of a message's attachments searchable. The run that read
 * the last attachment makes the texts searchable within seconds, unless the run dies.
 */
const SEARCHABLE_SECONDS = 60

const searchableKey = (projectId: string, messageRow: string): string =>
  `read_attachments:${projectId}:${messageRow}`

/** Queues a job for the case that the present run dies before it has made the attachments of a message searchable. */
const queueSearchable = (db: Queryable, projectId: string, messageRow: string): Promise<void> =>
  addJob(db, {
    task: 'read_attachments',
    payload: { projectId, messageRow },
    key: searchableKey(projectId, messageRow),
    runAt: new Date(Date.now() + SEARCHABLE_SECONDS * 1000),
  })

/** Removes the job of {@link recordText} after the attachments of the message have become searchable. */
export async function endSearchable(
  db: Queryable,
  projectId: string,
  messageRow: string,
): Promise<void> {
  await db.query('select graphile_worker.remove_job($1)', [searchableKey(projectId, messageRow)])
}

/** Queues the job that reads the attachments of an approved mail, if the mail has an attachment to read. */
export async function queueWaitingReading(
  db: Queryable,
  projectId: string,
  messageRow: string,
): Promise<void> {
  const { rowCount } = await db.query({
    name: 'find-waiting-reading',
    text: `select from attachment_texts where message_row = $1 and state = 'pending' limit 1`,
    values: [messageRow],
  })
  if ((rowCount ?? 0) > 0) await queueReading(db, projectId)
}

/** Records the attachments of a new message that a worker process must read. */
export async function insertPendingTexts(
  db: Queryable,
  { projectId, messageRow }: { projectId: string; messageRow: string },
  attachmentIds: readonly string[],
): Promise<void> {
  if (attachmentIds.length === 0) return
  await db.query({
    name: 'insert-pending-texts',
    text: `insert into attachment_texts (message_row, attachment_id, project_id)
           select $1, id, $2 from unnest($3::text[]) id`,
    values: [messageRow, projectId, attachmentIds],
  })
  await queueReading(db, projectId)
}

/**
 * Holds the outcome of reading one attachment: the text of the attachment, or the reason why the attachment has no
 * text.
 */
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
 * Records the text that a worker process read from an attachment, together with the event. A second call for the same
 * attachment changes nothing. After the last attachment text of a message, the transaction also queues a job, which
 * makes the texts searchable if the present run dies.
 * @returns true if the service has now read every attachment of the message.
 */
export async function recordText(pool: Pool, projectId: string, outcome: TextOutcome) {
  return transaction(pool, async (db) => {
    const { messageRow, attachmentId, state, kind, reason, text, omitted } = outcome
    const chars = text === null ? 0 : charsOf(text)
    const { rowCount } = await db.query({
      name: 'record-attachment-text',
      text: `update attachment_texts
             set state = $3, kind = $4, reason = $5, content = $6, chars = $7, omitted = $8, read_at = clock_timestamp(),
                 claimed_at = null
             where message_row = $1 and attachment_id = $2 and state = 'pending'`,
      values: [messageRow, attachmentId, state, kind, reason, text, chars, omitted],
    })
    const isFirst = rowCount === 1
    const events = isFirst ? await recordFirst(db, projectId, { outcome, chars }) : []
    const { rows } = await db.query<{ waits: boolean }>({
      name: 'has-pending-texts',
      text: `select exists (select from attachment_texts where message_row = $1 and state = 'pending') as waits`,
      values: [messageRow],
    })
    const isLast = !rows[0]!.waits
    if (isFirst && isLast) await queueSearchable(db, projectId, messageRow)
    // The function records the events at the end of the transaction, because `recordEvents` keeps the project's event
    // stream locked until the commit.
    await recordEvents(db, events)
    return isLast
  })
}

/**
 * Records the consequences of an attachment's text: the daily sums, the attachment's description, one-time codes and
 * invites. @returns the events that the caller must record.
 */
async function recordFirst(
  db: Client,
  projectId: string,
  { outcome, chars }: { outcome: TextOutcome; chars: number },
): Promise<NewEvent[]> {
  await countReading(db, projectId, outcome)
  await describe(db, outcome, chars)
  const gainedCode = await addFound(db, outcome)
  const invites = await recordInvites(db, outcome.messageRow, outcome.invites)
  return await eventsOf(db, outcome, { chars, gainedCode, invites })
}

/**
 * Counts the code points of a text, because the PostgreSQL function `substr` counts code points when it reads a page of
 * the text.
 */
function charsOf(text: string): number {
  let chars = 0
  for (const _ of text) chars++
  return chars
}

/**
 * Copies the state and the length of an attachment's text into the description of the attachment, and labels the
 * message.
 */
const describe = (
  db: Queryable,
  { messageRow, attachmentId, state, reason, omitted, label }: TextOutcome,
  chars: number,
) =>
  db.query({
    name: 'describe-attachment-text',
    text: `
      update messages m set
        labels = case when $4::text is null or m.labels @> array[$4::text] then m.labels else m.labels || $4::text end,
        attachments = (
          select jsonb_agg(
            case when d ->> 'attachmentId' = $2 then d || jsonb_build_object('text', $3::jsonb) else d end order by n)
          from jsonb_array_elements(m.attachments) with ordinality x (d, n))
      where row = $1`,
    values: [
      messageRow,
      attachmentId,
      JSON.stringify({ state, chars, ...(reason === null ? {} : { reason }), omitted }),
      label,
    ],
  })

/**
 * Adds the one-time codes and links of an attachment to the codes and links of its message.
 * @returns a boolean that tells whether the first code of the message comes from the attachment.
 */
async function addFound(
  db: Client,
  { messageRow, attachmentId, codes, links }: TextOutcome,
): Promise<boolean> {
  if (codes.length === 0 && links.length === 0) return false
  const { rows } = await db.query<{ codes: Code[] | null; links: MailLink[] | null }>({
    name: 'lock-found',
    text: 'select codes, links from messages where row = $1 for no key update',
    values: [messageRow],
  })
  const [row] = rows
  if (row === undefined) return false
  const known = row.codes ?? []
  const values = new Set(known.map(({ value }) => value))
  const added = codes
    .filter(({ value }) => !values.has(value))
    .map((code) => ({ ...code, part: 'attachment', attachmentId }))
  const hrefs = new Set((row.links ?? []).map(({ href }) => href))
  const fresh = links.filter(({ href }) => !hrefs.has(href))
  await db.query({
    name: 'add-found',
    text: 'update messages set codes = $2, links = $3 where row = $1',
    values: [
      messageRow,
      JSON.stringify([...known, ...added].slice(0, CODES_MAX)),
      JSON.stringify([...(row.links ?? []), ...fresh].slice(0, LINKS_MAX)),
    ],
  })
  return known.length === 0 && added.length > 0
}

async function eventsOf(
  db: Queryable,
  { messageRow, attachmentId, state }: TextOutcome,
  { chars, gainedCode, invites }: { chars: number; gainedCode: boolean; invites: AppliedInvite[] },
): Promise<NewEvent[]> {
  const [event] = await readMessageEvents(db, [messageRow])
  if (event === undefined) return []
  const { projectId, data, traceparent, isSent } = event
  // If the project itself sent the mail with this attachment, the project gets no event.
  if (isSent) return []
  const attachment: AttachmentRead = { attachmentId, state, chars }
  return [
    { projectId, type: 'attachment.read', data: { ...data, attachment }, traceparent },
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
    ...(gainedCode ? [{ projectId, type: 'message.code' as const, data, traceparent }] : []),
  ]
}

const noticeOf = ({ uid, recurrenceId, method, effect }: AppliedInvite): InviteNotice => ({
  uid,
  recurrenceId,
  method,
  effect,
})

/** Adds the bytes and the processor time of one attachment's reading to the project's sums for the present UTC day. */
const countReading = (
  db: Queryable,
  projectId: string,
  { bytes, cpuMs }: Pick<TextOutcome, 'bytes' | 'cpuMs'>,
) =>
  db.query({
    name: 'count-reading',
    text: `insert into attachment_reading as r (project_id, day, bytes, cpu_ms)
           select id, (clock_timestamp() at time zone 'UTC')::date, $2, $3 from projects where id = $1 and deleted_at is null
           on conflict (project_id) do update set day = excluded.day,
             bytes = excluded.bytes + case when r.day = excluded.day then r.bytes else 0 end,
             cpu_ms = excluded.cpu_ms + case when r.day = excluded.day then r.cpu_ms else 0 end`,
    values: [projectId, bytes, Math.ceil(cpuMs)],
  })
