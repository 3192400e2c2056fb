import { randomInt } from 'node:crypto'
import { addressKey } from '../../../shared/mail/address.ts'
import {
  type Authentication,
  UNAUTHENTICATED_LABEL,
} from '../../../shared/mail/parse/authentication.ts'
import type { ParsedMail } from '../../../shared/mail/parse/parseMail.ts'
import type { IndexedMail } from '../../../shared/mail/search/indexedMail.ts'
import {
  alternativeMessageId,
  ancestors,
  baseSubject,
  messageIdHash,
  sameParticipants,
  subjectKey,
} from '../../../shared/mail/threading.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { type NewEvent, recordEvents } from '../../events/events.ts'
import { deleteUnusedRawMails } from '../messages/rawMails.ts'
import type { InboundMail } from './inboundMails.ts'
import { insertReceived, type ReceivedMessage } from './insertReceived.ts'

/**
 * Tells how an inbound mail was stored. The result `retransmission` means that the inbox already has or had the
 * message. The result `gone` means that the project of the inbox is deleted. The result `busy` means that another
 * transaction has locked the inbox, so that the mail is not stored yet.
 */
export type StoreOutcome = 'stored' | 'retransmission' | 'gone' | 'busy'

/** Holds an inbound mail, its parsed content and its sender authentication. */
export type AuthenticatedMail = IndexedMail & {
  inbound: InboundMail
  authentication: Authentication
  /**
   * Lists the hash of each attachment's object in the object store, in the order of the attachments. If the hash of an
   * attachment is absent or null, the attachment's database row holds the bytes.
   */
  objects?: readonly (Buffer | null)[]
  /** Tells that a worker process must read the attachments as aggregate reports. */
  holdsReport?: boolean
}

/** Sets how long a transaction that has locked several inboxes waits at most for a further lock. */
const PATIENCE = '500ms'

/**
 * Stores parsed mails in their threads and marks their inbound mails as processed, in one transaction. The function
 * locks the project's row, so that two messages of one inbox never choose a thread or an identifier at the same time.
 * The function reads the inbox in a separate statement after the lock. Only such a statement sees the data that other
 * transactions committed during the wait for the lock.
 * @param received lists mails of one project or, with `skipBusy`, of several projects. With `skipBusy`, the function
 * skips locked inboxes, so that they do not delay the others.
 */
export async function storeParsedMails(
  pool: Pool,
  received: readonly AuthenticatedMail[],
  { skipBusy = false } = {},
): Promise<StoreOutcome[]> {
  return transaction(pool, async (db) => {
    const outcomes = new Map<AuthenticatedMail, StoreOutcome>()
    const events: NewEvent[] = []
    const locked = await lockInboxes(db, received, skipBusy)
    const isLocked = ({ inbound }: AuthenticatedMail) => locked.has(inbound.projectId)
    for (const wave of wavesOf(received.filter(isLocked))) {
      await storeWave(db, wave, outcomes, events)
    }
    // The function deletes the raw mail of a repeated transmission, because no message refers to it.
    const repeated = received.filter((one) => outcomes.get(one) === 'retransmission')
    await deleteUnusedRawMails(
      db,
      repeated.map(({ inbound }) => inbound.rawId),
    )
    // The function records the events at the end of the transaction, because `recordEvents` locks the project's event
    // stream. If it did so earlier, two transactions could deadlock on the event stream and the message of a bounce.
    await recordEvents(db, events)
    return received.map(
      (one) => outcomes.get(one) ?? (skipBusy && !isLocked(one) ? 'busy' : 'gone'),
    )
  })
}

/**
 * Locks the inboxes of the received mails, except inboxes of deleted projects. @returns the ids of the projects with
 * locked inboxes.
 */
async function lockInboxes(
  db: Queryable,
  received: readonly AuthenticatedMail[],
  skipBusy: boolean,
): Promise<Set<string>> {
  const { rows } = await db.query<{ id: string }>({
    name: skipBusy ? 'lock-inboxes' : 'lock-inbox',
    text: `select id ${skipBusy ? `, set_config('lock_timeout', '${PATIENCE}', true)` : ''} from projects
           where id = any ($1) and deleted_at is null
           order by id for no key update ${skipBusy ? 'skip locked' : ''}`,
    values: [[...new Set(received.map(({ inbound }) => inbound.projectId))]],
  })
  return new Set(rows.map(({ id }) => id))
}

/**
 * Divides parsed mails into groups that one SQL statement can store together. Within a group, no mail repeats another
 * mail, refers to it, or needs its subject to find a thread.
 */
function wavesOf(received: readonly AuthenticatedMail[]): AuthenticatedMail[][] {
  const waves: AuthenticatedMail[][] = []
  let names = new Set<string>()
  for (const one of received) {
    const { inbound, mail } = one
    const { projectId } = inbound
    const own = [mail.links.messageId, ...ancestors(mail.links), ...returnedIds(mail)]
    own.push(mail.contentHash.toString('latin1'))
    const keys = own.map((name) => `${projectId} ${name}`)
    const isAfter =
      keys.some((key) => names.has(key)) || (seeksSubject(mail) && names.has(projectId))
    if (isAfter || waves.length === 0) {
      waves.push([])
      names = new Set()
    }
    waves.at(-1)!.push(one)
    for (const key of [projectId, ...keys]) names.add(key)
  }
  return waves
}

async function storeWave(
  db: Queryable,
  wave: readonly AuthenticatedMail[],
  outcomes: Map<AuthenticatedMail, StoreOutcome>,
  events: NewEvent[],
): Promise<void> {
  const known = await findRelated(db, wave)
  const ownIds = new Set(
    wave.map(({ inbound, mail }) => `${inbound.projectId} ${mail.links.messageId}`),
  )
  const repeated: { id: string; earlierRow: string | null }[] = []
  const fresh: ReceivedMessage[] = []
  for (const [n, one] of wave.entries()) {
    const found = known.get(n)
    if (found === undefined) continue
    const { inbound, mail } = one
    outcomes.set(one, found.isRetransmission ? 'retransmission' : 'stored')
    if (found.isRetransmission) {
      repeated.push({ id: inbound.id, earlierRow: found.earlierRow })
      continue
    }
    const { messageId } = mail.links
    fresh.push({
      ...one,
      messageId: found.idTaken
        ? await freeMessageId(db, inbound.projectId, messageId, ownIds)
        : messageId,
      threadRow: found.threadRow ?? (await findThreadBySubject(db, one)),
    })
  }
  if (repeated.length > 0) {
    await db.query(
      `update inbound_mails i set state = 'retransmission', message_row = r.message_row
       from unnest($1::bigint[], $2::bigint[]) r (id, message_row) where i.id = r.id`,
      [repeated.map(({ id }) => id), repeated.map(({ earlierRow }) => earlierRow)],
    )
  }
  if (fresh.length > 0) events.push(...(await insertReceived(db, fresh)))
}

type Known = {
  isRetransmission: boolean
  /**
   * Holds the row number of the stored message that this mail repeats. Null means that no stored message is the same,
   * or that the same message was deleted.
   */
  earlierRow: string | null
  idTaken: boolean
  threadRow: string | null
}

/**
 * Searches the inbox of each mail for three things: the same message, its Message-ID, and the nearest thread to which
 * the mail refers. The query orders its rows by Message-ID, so that PostgreSQL uses the right index. Otherwise, a query
 * plan that PostgreSQL made for an empty table read the whole inbox for each mail.
 * @returns the search results by the index of the mail in `wave`. A mail without a result was already processed.
 */
async function findRelated(
  db: Queryable,
  wave: readonly AuthenticatedMail[],
): Promise<Map<number, Known>> {
  // The Message-IDs of a bounce begin with the Message-IDs of the returned message. Therefore the bounce joins the
  // thread of the returned message even without References.
  const named = wave.flatMap(({ mail }, n) =>
    [...returnedIds(mail), ...ancestors(mail.links), mail.links.messageId].map((id) => ({ n, id })),
  )
  const { rows } = await db.query<{
    n: number
    earlier_row: string | null
    was_deleted: boolean
    id_taken: boolean
    thread_row: string | null
  }>({
    name: 'look-around',
    text: `
      with given as (
        select g.* from unnest($1::bigint[], $2::text[], $3::bytea[], $4::bytea[]) with ordinality
          g (inbound_id, project_id, content_hash, message_id_hash, n)
        join inbound_mails i on i.id = g.inbound_id and i.state = 'accepted'
        order by i.id for no key update of i
      ), named as (
        select distinct on (g.n) g.n, t.thread_row
        from unnest($5::int[], $6::bytea[]) with ordinality h (n, hash, nearness)
        join given g on g.n = h.n + 1
        cross join lateral (
          select thread_row from thread_identifiers where project_id = g.project_id and message_id_hash = h.hash limit 1
        ) t
        order by g.n, h.nearness
      )
      select (n - 1)::int as n,
        (select row from messages
         where project_id = g.project_id and content_hash = g.content_hash and direction = 'received') as earlier_row,
        exists (
          select from deleted_messages where project_id = g.project_id and content_hash = g.content_hash
          limit 1) as was_deleted,
        (select (m.project_id, m.message_id_hash) = (g.project_id, g.message_id_hash) from messages m
         where (m.project_id, m.message_id_hash) >= (g.project_id, g.message_id_hash)
         order by m.project_id, m.message_id_hash limit 1) is true as id_taken,
        named.thread_row
      from given g left join named using (n)`,
    values: [
      wave.map(({ inbound }) => inbound.id),
      wave.map(({ inbound }) => inbound.projectId),
      wave.map(({ mail }) => mail.contentHash),
      wave.map(({ mail }) => messageIdHash(mail.links.messageId)),
      named.map(({ n }) => n),
      named.map(({ id }) => messageIdHash(id)),
    ],
  })
  return new Map(
    rows.map((row) => [
      row.n,
      {
        isRetransmission: row.earlier_row !== null || row.was_deleted,
        earlierRow: row.earlier_row,
        idTaken: row.id_taken,
        threadRow: row.thread_row,
      },
    ]),
  )
}

/** Returns the Message-IDs of the message that a bounce returns. A proven Message-ID comes first. */
const returnedIds = ({ bounce }: ParsedMail): string[] =>
  bounce === null
    ? []
    : [...(bounce.proof === null ? [] : [bounce.proof.messageId]), ...bounce.messageIds]

/**
 * Tells whether the service must find the thread of a mail by its subject. This is the case only for a reply without
 * In-Reply-To and References.
 */
const seeksSubject = ({ links, subject }: ParsedMail): boolean =>
  links.inReplyTo.length === 0 &&
  links.references.length === 0 &&
  baseSubject(subject).isReply &&
  subjectKey(subject) !== null

/** Sets the maximum age in days of a thread that `findThreadBySubject` may find. */
const SUBJECT_DAYS = 30
const THREADS_SEARCHED = 5
const MESSAGES_COMPARED = 20

/**
 * Finds the thread of a reply without In-Reply-To and References. The thread must be recent and have the same subject
 * and participants as the reply. The subject of the reply must have a reply prefix, such as `Re:`. Otherwise the
 * invoices of two months would join one thread.
 *
 * Anybody may know the subject and the people of a conversation. Therefore a reply whose author is not proven joins no
 * thread that holds a proven message of this author. If DMARC fails, it joins no thread at all.
 */
async function findThreadBySubject(
  db: Queryable,
  { inbound, mail, authentication }: AuthenticatedMail,
): Promise<string | null> {
  const isProven = !mail.labels.includes(UNAUTHENTICATED_LABEL)
  if (!seeksSubject(mail) || (!isProven && authentication.dmarc === 'fail')) return null
  const { rows } = await db.query<{
    thread_row: string
    participants: string[]
    proven_authors: string[]
  }>({
    name: 'find-thread-by-subject',
    text: `
      select t.row as thread_row, m.participants, m.proven_authors
      from (
        select row, updated_at from threads
        where project_id = $1 and subject_key = $2 and updated_at > $3::timestamptz - interval '${SUBJECT_DAYS} days'
        order by updated_at desc limit ${THREADS_SEARCHED}
      ) t cross join lateral (
        select from_addresses || to_addresses || cc_addresses as participants,
          case when direction = 'received' and not 'unauthenticated' = any (labels) then from_addresses else '{}' end
            as proven_authors
        from messages
        where thread_row = t.row order by created_at desc, row desc limit ${MESSAGES_COMPARED}
      ) m
      order by t.updated_at desc`,
    values: [inbound.projectId, subjectKey(mail.subject), inbound.receivedAt],
  })
  const own = [...mail.from, ...mail.to, ...mail.cc]
  const authors = new Set(mail.from.map(addressKey))
  const closed = new Set(
    rows
      .filter((row) => !isProven && row.proven_authors.some((one) => authors.has(addressKey(one))))
      .map((row) => row.thread_row),
  )
  const found = rows.find(
    (row) => !closed.has(row.thread_row) && sameParticipants(row.participants, own),
  )
  return found?.thread_row ?? null
}

/**
 * Returns a free alternative to a Message-ID that another message of the inbox already has (docs/contract.md §4).
 * @param taken holds the projects and Message-IDs of the mails that the same SQL statement stores. The function adds
 * the Message-ID that it returns.
 */
async function freeMessageId(
  db: Queryable,
  projectId: string,
  wanted: string,
  taken: Set<string>,
): Promise<string> {
  for (let probe = 1; ; probe++) {
    // After 8 tries with consecutive numbers, the function uses a random number for the Message-ID. Otherwise thousands
    // of mails with the same Message-ID would need thousands of tries each.
    const n = probe <= 8 ? probe : randomInt(9, 2 ** 47)
    const candidate = alternativeMessageId(wanted, n)
    if (taken.has(`${projectId} ${candidate}`)) continue
    const { rowCount } = await db.query(
      'select from messages where project_id = $1 and message_id_hash = $2',
      [projectId, messageIdHash(candidate)],
    )
    if (rowCount !== 0) continue
    taken.add(`${projectId} ${candidate}`)
    return candidate
  }
}
