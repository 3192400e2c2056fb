import { randomInt } from 'node:crypto'
import type { Authentication } from '../../shared/mail/authentication.ts'
import type { IndexedMail } from '../../shared/mail/indexedMail.ts'
import type { ParsedMail } from '../../shared/mail/parseMail.ts'
import {
  alternativeMessageId,
  ancestors,
  baseSubject,
  messageIdHash,
  sameParticipants,
  subjectKey,
} from '../../shared/mail/threading.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { type NewEvent, recordEvents } from '../events/events.ts'
import type { InboundMail } from './inboundMails.ts'
import { insertReceived } from './insertReceived.ts'
import { deleteUnusedRawMails } from './rawMails.ts'

/** The end of an inbound mail. `retransmission`: the inbox has or had the message. `gone`: the project is deleted. */
export type StoreOutcome = 'stored' | 'retransmission' | 'gone'

/** An inbound mail, its parsed content and its sender authentication. */
export type AuthenticatedMail = IndexedMail & {
  inbound: InboundMail
  authentication: Authentication
}

/**
 * Stores parsed mails of one inbox in their threads and ends their inbound mails, in one transaction. The project's row
 * is the inbox's lock: two messages of one inbox never choose a thread or an identifier concurrently. A separate
 * statement after the lock reads the inbox: a statement sees only commits from before its start.
 * @param received mails of one project.
 */
export async function storeParsedMails(
  pool: Pool,
  received: readonly AuthenticatedMail[],
): Promise<StoreOutcome[]> {
  return transaction(pool, async (db) => {
    const outcomes: StoreOutcome[] = []
    const events: NewEvent[] = []
    for (const one of received) outcomes.push(await storeOne(db, one, events))
    // No message refers to the raw mail of a retransmission.
    const repeated = received.filter((_, n) => outcomes[n] === 'retransmission')
    await deleteUnusedRawMails(
      db,
      repeated.map(({ inbound }) => inbound.rawId),
    )
    // Last: a bounce must not wait for its message's lock while this transaction holds the stream's lock.
    await recordEvents(db, events)
    return outcomes
  })
}

async function storeOne(
  db: Queryable,
  received: AuthenticatedMail,
  events: NewEvent[],
): Promise<StoreOutcome> {
  const { inbound, mail } = received
  if (!(await lockInbox(db, inbound))) return 'gone'
  const known = await findRelated(db, inbound.projectId, mail)
  if (known.isRetransmission) {
    await db.query(
      `update inbound_mails set state = 'retransmission', message_row = $2 where id = $1`,
      [inbound.id, known.earlierRow],
    )
    return 'retransmission'
  }
  const messageId = known.idTaken
    ? await freeMessageId(db, inbound.projectId, mail.links.messageId)
    : mail.links.messageId
  const recorded = await insertReceived(db, {
    ...received,
    messageId,
    threadRow: known.threadRow ?? (await findThreadBySubject(db, inbound, mail)),
  })
  events.push(...recorded)
  return 'stored'
}

/** Locks the inbox and the inbound mail. @returns false: the project is deleted, or the inbound mail has ended. */
async function lockInbox(db: Queryable, inbound: InboundMail): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'lock-inbox',
    text: `select from projects p join inbound_mails i on i.project_id = p.id
           where p.id = $1 and p.deleted_at is null and i.id = $2 and i.state = 'accepted'
           for no key update`,
    values: [inbound.projectId, inbound.id],
  })
  return rowCount === 1
}

type Known = {
  isRetransmission: boolean
  /** The message that this one repeats; null: none, or deleted. */
  earlierRow: string | null
  idTaken: boolean
  threadRow: string | null
}

/** Looks for the same message in the inbox, for its Message-ID, and for the nearest thread that it names. */
async function findRelated(db: Queryable, projectId: string, mail: ParsedMail): Promise<Known> {
  const { links, contentHash } = mail
  const { rows } = await db.query<{
    earlier_row: string | null
    was_deleted: boolean
    id_taken: boolean
    thread_row: string | null
  }>({
    name: 'look-around',
    text: `select
      (select row from messages
       where project_id = $1 and content_hash = $2 and direction = 'received') as earlier_row,
      exists (select from deleted_messages where project_id = $1 and content_hash = $2) as was_deleted,
      exists (select from messages where project_id = $1 and message_id_hash = $3) as id_taken,
      (select t.thread_row from unnest($4::bytea[]) with ordinality h (hash, nearness)
       join thread_identifiers t on t.project_id = $1 and t.message_id_hash = h.hash
       order by h.nearness limit 1) as thread_row`,
    values: [
      projectId,
      contentHash,
      messageIdHash(links.messageId),
      // A bounce joins the thread of its returned message, with or without References.
      [...returnedIds(mail), ...ancestors(links), links.messageId].map(messageIdHash),
    ],
  })
  const row = rows[0]!
  return {
    isRetransmission: row.earlier_row !== null || row.was_deleted,
    earlierRow: row.earlier_row,
    idTaken: row.id_taken,
    threadRow: row.thread_row,
  }
}

/** The Message-IDs of a returned message, the proven one first. */
const returnedIds = ({ bounce }: ParsedMail): string[] =>
  bounce === null
    ? []
    : [...(bounce.proof === null ? [] : [bounce.proof.messageId]), ...bounce.messageIds]

/** The age of threads that findThreadBySubject searches. */
const SUBJECT_DAYS = 30
const THREADS_SEARCHED = 5
const MESSAGES_COMPARED = 20

/**
 * The thread of a reply without In-Reply-To and References: a recent one with the same subject and participants. Only
 * for a subject with a reply prefix: joining by subject alone merges the invoices of two months or two people.
 */
async function findThreadBySubject(
  db: Queryable,
  inbound: InboundMail,
  mail: ParsedMail,
): Promise<string | null> {
  const key = subjectKey(mail.subject)
  const named = mail.links.inReplyTo.length > 0 || mail.links.references.length > 0
  if (named || key === null || !baseSubject(mail.subject).isReply) return null
  const { rows } = await db.query<{ thread_row: string; participants: string[] }>({
    name: 'find-thread-by-subject',
    text: `
      select t.row as thread_row, m.participants
      from (
        select row, updated_at from threads
        where project_id = $1 and subject_key = $2 and updated_at > $3::timestamptz - interval '${SUBJECT_DAYS} days'
        order by updated_at desc limit ${THREADS_SEARCHED}
      ) t cross join lateral (
        select from_addresses || to_addresses || cc_addresses as participants from messages
        where thread_row = t.row order by created_at desc, row desc limit ${MESSAGES_COMPARED}
      ) m
      order by t.updated_at desc`,
    values: [inbound.projectId, key, inbound.receivedAt],
  })
  const own = [...mail.from, ...mail.to, ...mail.cc]
  return rows.find(({ participants }) => sameParticipants(participants, own))?.thread_row ?? null
}

/** A free alternative to a Message-ID that another message of this inbox has (docs/contract.md §4). */
async function freeMessageId(db: Queryable, projectId: string, wanted: string): Promise<string> {
  for (let probe = 1; ; probe++) {
    // Random after 8 probes: thousands of mails under one Message-ID must not cost thousands of probes each.
    const n = probe <= 8 ? probe : randomInt(9, 2 ** 47)
    const candidate = alternativeMessageId(wanted, n)
    const { rowCount } = await db.query(
      'select from messages where project_id = $1 and message_id_hash = $2',
      [projectId, messageIdHash(candidate)],
    )
    if (rowCount === 0) return candidate
  }
}
