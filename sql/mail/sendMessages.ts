import { newThreadId } from '../../shared/ids.ts'
import type { Attachment } from '../../shared/mail/parseMail.ts'
import { searchVector } from '../../shared/mail/searchTerms.ts'
import type { SentAttachment } from '../../shared/mail/sentAttachment.ts'
import { messageIdHash, subjectKey } from '../../shared/mail/threading.ts'
import type { Unsubscribe } from '../../shared/mail/unsubscribe.ts'
import { findIdempotent, KEY_LIFETIME } from '../account/idempotency.ts'
import type { Queryable } from '../db.ts'
import { addJobsFrom } from '../queue/jobs.ts'
import type { Refusal } from './recipientPolicy.ts'

/** A message an agent wants sent, and everything needed to store it. */
export type SendIntent = {
  projectId: string
  /** From `newMessageId`; the same on every attempt. */
  messageId: string
  /** The thread a reply belongs to; null starts a new one. */
  threadRow: string | null
  from: string
  to: readonly string[]
  cc: readonly string[]
  bcc: readonly string[]
  subject: string
  text: string
  html: string | null
  inReplyTo: readonly string[]
  references: readonly string[]
  attachments: readonly SentAttachment[]
  unsubscribe: Unsubscribe | null
  /** Recipients that the mail does not go to. */
  refused: readonly Refusal[]
  /** The caller's idempotency key and what it is bound to; null without one. */
  key: { name: string; requestHash: Buffer } | null
  /** What is answered beside `threadId` and `createdAt`; kept under the key. */
  answer: object
}

/** What the API answers about an accepted message. */
export type AcceptedMessage = { threadId: string; createdAt: string }

/**
 * What became of an intent: accepted; `repeat` when its key has an answer already; `gone` when the project or the thread
 * is not there any more; `over quota` when the project has written to as many recipients today as it may.
 */
export type SendOutcome = AcceptedMessage | 'repeat' | 'gone' | 'over quota'

/** What is said of a recipient that a rule of the project refuses. */
const BLOCKED = 'blocked: a rule of the project stands against this address'
/** What is said of a recipient that mail does not go to any more. */
export const SUPPRESSED = 'suppressed: an earlier mail to this address came back'

/** The name under which keys of send and reply stand. */
const OPERATION = 'send'

const ACCEPT = `
  with given as (
    select i.*, decode(i.hash, 'hex') as hash_bytes, clock.now,
      to_char(clock.now at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as now_text
    from jsonb_to_recordset($1::jsonb) as i (
      n int, project_id text, message_id text, hash text, thread_row bigint, new_thread_id text, from_address text,
      to_list text[], cc_list text[], bcc_list text[], subject text, body text, html text,
      in_reply_to text[], reference_ids text[], search tsvector, subject_key text, key text, request_hash text,
      answer text, attachments jsonb, refused text[], reasons text[], recipients int, unsubscribe jsonb),
    (select clock_timestamp()::timestamptz(3) as now) clock
    where exists (
      select from projects p where p.id = i.project_id and p.deleted_at is null for key share)
  ), joined as (
    select row, id from threads where row in (select thread_row from given) order by row for no key update
  ), placeable as (
    select g.*, coalesce(j.id, g.new_thread_id) as thread_id
    from given g left join joined j on j.row = g.thread_row where g.thread_row is null or j.row is not null
  ), single as (
    -- Of those with the same key the first.
    select * from (
      select p.*, row_number() over (partition by project_id, key order by n) as place from placeable p
    ) p where key is null or place = 1
  ), priced as (
    select s.*, sum(recipients) over (partition by s.project_id order by n) + coalesce(q.used, 0) as used_then
    from single s left join send_quotas q on q.project_id = s.project_id and q.day = (s.now at time zone 'UTC')::date
  ), within as (
    select * from priced where $5::int is null or used_then <= $5::int
  ), beyond as (
    select * from priced where used_then > $5::int
  ), verdict as (
    -- Beyond the limit only with what is refused itself: nothing is taken then, and each is tried by itself.
    select exists (
      select from beyond b where recipients + coalesce(
        (select max(used_then) from within w where w.project_id = b.project_id),
        (select min(used_then - recipients) from beyond o where o.project_id = b.project_id)) <= $5::int) as is_open
  ), affordable as (
    select * from within where not (select is_open from verdict)
  ), taken as (
    -- A key that another request holds at this moment is waited for; then it has its answer, and is not taken here.
    insert into idempotency_keys as k (project_id, operation, key, request_hash, result, created_at)
    select project_id, '${OPERATION}', key, decode(request_hash, 'hex'),
      json_build_object('threadId', thread_id, 'createdAt', now_text, 'answer', answer::json)::text, now
    from affordable where key is not null order by project_id, key
    on conflict (project_id, operation, key) do update
      set request_hash = excluded.request_hash, result = excluded.result, created_at = excluded.created_at
      where k.created_at < excluded.created_at - interval '${KEY_LIFETIME}'
    returning project_id, key
  ), intent as (
    select * from affordable where key is null or (project_id, key) in (select project_id, key from taken)
  ), charged as (
    insert into send_quotas as q (project_id, day, used, allowed)
    select project_id, (min(now) at time zone 'UTC')::date, sum(recipients), $5::int from intent
    where $5::int is not null group by project_id order by project_id
    on conflict (project_id) do update set day = excluded.day, allowed = excluded.allowed,
      used = excluded.used + case when q.day = excluded.day then q.used else 0 end
  ), begun as (
    insert into threads (id, project_id, subject, created_at, updated_at, message_count, subject_key)
    select new_thread_id, project_id, subject, now, now, 1, decode(subject_key, 'hex') from intent where thread_row is null
    returning row, id
  ), grown as (
    update threads t set message_count = t.message_count + g.added, updated_at = greatest(t.updated_at, g.now)
    from (select thread_row, count(*) as added, max(now) as now from intent
          where thread_row in (select row from joined) group by thread_row) g
    where t.row = g.thread_row
    returning t.row, t.id
  ), placed as (
    select i.*, t.row as at_thread
    from intent i join (select row, id from begun union all select row, id from grown) t on t.id = i.thread_id
  ), stored as (
    insert into messages (
      project_id, thread_row, direction, message_id, message_id_hash, in_reply_to, reference_ids, from_addresses,
      to_addresses, cc_addresses, bcc_addresses, subject, text_body, html_body, text_bytes, attachments, labels,
      delivery_status, created_at, added_at, search)
    select project_id, at_thread, 'sent', message_id, hash_bytes, in_reply_to, reference_ids, array[from_address],
      to_list, cc_list, bcc_list, subject, body, html, octet_length(body) + octet_length(attachments::text),
      attachments, array['sent'], 'queued', now, now, search
    from placed order by n
    returning row, message_id_hash, project_id, thread_row, created_at, to_addresses, cc_addresses, bcc_addresses
  ), known as (
    insert into thread_identifiers (project_id, message_id_hash, thread_row)
    select project_id, message_id_hash, thread_row from stored
  ), outgoing as (
    insert into outbound_mails (message_row, project_id, next_attempt_at, accepted_at, unsubscribe)
    select s.row, s.project_id, s.created_at, s.created_at, p.unsubscribe
    from stored s join placed p on p.hash_bytes = s.message_id_hash and p.project_id = s.project_id
  ), addressed as (
    insert into outbound_recipients (message_row, address, state, error)
    select distinct s.row, a, case when a = any (p.refused) then 'failed' else 'queued' end,
      case p.reasons[array_position(p.refused, a)] when 'rule' then '${BLOCKED}' when 'suppressed' then '${SUPPRESSED}' end
    from stored s join placed p on p.hash_bytes = s.message_id_hash and p.project_id = s.project_id,
      unnest(s.to_addresses || s.cc_addresses || s.bcc_addresses) a
  ), filed as (
    insert into message_attachments (message_row, attachment_id, bytes)
    select s.row, a.id, a.bytes from unnest($2::int[], $3::text[], $4::bytea[]) a (n, id, bytes)
    join placed p using (n) join stored s on s.message_id_hash = p.hash_bytes and s.project_id = p.project_id
  ), due as (
    select row::text as payload_id from stored
  ), jobs as (
    ${addJobsFrom('due', 'send_mail', 'messageRow')}
  )
  select p.n, p.thread_id, p.now_text as created_at, s.row is not null as accepted,
    p.n in (select n from beyond) or (p.project_id, p.key) in (select project_id, key from beyond) as over_quota,
    (select is_open from verdict) as is_open
  from placeable p left join stored s on s.message_id_hash = p.hash_bytes and s.project_id = p.project_id
  cross join jobs`

/**
 * Stores messages to send, their threads and their jobs in one statement. One statement for many is what makes this
 * fast: NOTIFY lets only one transaction commit at a time, so 100 intents in one commit cost little more than one.
 * @param dailyLimit recipients that a project may write to in a day (UTC); null for any number.
 * A key and its answer are stored with the message, so that neither is ever there without the other.
 * @returns one outcome per intent, in order.
 */
export async function acceptMessages(
  db: Queryable,
  intents: readonly SendIntent[],
  dailyLimit: number | null,
): Promise<SendOutcome[]> {
  const records = intents.map((intent, n) => ({
    n,
    project_id: intent.projectId,
    message_id: intent.messageId,
    hash: messageIdHash(intent.messageId).toString('hex'),
    thread_row: intent.threadRow,
    new_thread_id: intent.threadRow === null ? newThreadId() : null,
    from_address: intent.from,
    to_list: intent.to,
    cc_list: intent.cc,
    bcc_list: intent.bcc,
    subject: intent.subject,
    body: intent.text,
    html: intent.html,
    in_reply_to: intent.inReplyTo,
    reference_ids: intent.references,
    subject_key: subjectKey(intent.subject)?.toString('hex') ?? null,
    search: searchVector(intent.projectId, {
      subject: intent.subject,
      from: [intent.from],
      to: [...intent.to, ...intent.cc, ...intent.bcc],
      text: [intent.text, ...intent.attachments.map(({ filename }) => filename)].join('\n'),
    }),
    attachments: intent.attachments.map(describe),
    unsubscribe: intent.unsubscribe,
    refused: intent.refused.map(({ address }) => address),
    reasons: intent.refused.map(({ reason }) => reason),
    recipients: new Set([...intent.to, ...intent.cc, ...intent.bcc]).size - intent.refused.length,
    key: intent.key?.name ?? null,
    request_hash: intent.key?.requestHash.toString('hex') ?? null,
    answer: JSON.stringify(intent.answer),
  }))
  const rows = await store(db, [JSON.stringify(records), ...fileColumns(intents), dailyLimit])
  // Of several, which ones are too many shows when each is tried by itself.
  if (rows === null && intents.length > 1) throw new Error('the daily limit was reached')
  if (rows === null) return ['over quota']
  const byNumber = new Map(rows.map((row) => [row.n, row]))
  return intents.map((_, n) => {
    const row = byNumber.get(n)
    if (row === undefined) return 'gone'
    if (row.accepted) return { threadId: row.thread_id, createdAt: row.created_at }
    return row.over_quota ? 'over quota' : 'repeat'
  })
}

type AcceptedRow = {
  n: number
  thread_id: string
  created_at: string
  accepted: boolean
  over_quota: boolean | null
  is_open: boolean
}

/**
 * Runs the statement; null when nothing was stored: a project's quota was used up by others in between (the check of the
 * table says so), or some would fit if others before them, which do not, were left out.
 */
async function store(db: Queryable, values: unknown[]): Promise<AcceptedRow[] | null> {
  try {
    const { rows } = await db.query<AcceptedRow>({ name: 'accept-messages', text: ACCEPT, values })
    return rows[0]?.is_open ? null : rows
  } catch (error) {
    const { constraint } = error as { constraint?: string }
    if (constraint === 'send_quotas_within') return null
    throw error
  }
}

const attachmentId = (index: number) => `att_${index + 1}`

/** An attachment as get-message shows it. */
const describe = (
  { filename, contentType, contentId, content }: SentAttachment,
  index: number,
): Attachment => ({
  attachmentId: attachmentId(index),
  filename,
  contentType,
  size: content.length,
  contentId: contentId === null ? null : `<${contentId}>`,
  disposition: contentId === null ? 'attachment' : 'inline',
})

/** The bytes of all attachments: the intent each belongs to, its identifier, and itself. */
function fileColumns(intents: readonly SendIntent[]): [number[], string[], Buffer[]] {
  const files = intents.flatMap(({ attachments }, n) =>
    attachments.map(({ content }, index) => ({ n, id: attachmentId(index), content })),
  )
  return [files.map(({ n }) => n), files.map(({ id }) => id), files.map(({ content }) => content)]
}

/** What an intent weighs in a statement, in bytes. */
export const intentBytes = ({ text, html, attachments }: SendIntent): number =>
  attachments.reduce(
    (sum, { content }) => sum + content.length,
    text.length + (html === null ? 0 : html.length),
  )

/** The answer that a key of send or reply has, and what the key is bound to; null where it has none. */
export async function findSent(
  db: Queryable,
  projectId: string,
  key: string,
): Promise<{ requestHash: Buffer; sent: AcceptedMessage & { answer: object } } | null> {
  const found = await findIdempotent(db, { projectId, operation: OPERATION, key })
  if (found === null || found.result === null) return null
  return { requestHash: found.requestHash, sent: JSON.parse(found.result) }
}
