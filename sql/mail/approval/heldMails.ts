/**
 * Stores mail that waits for the owner's approval. The following functions change the approval request and the held
 * mail together, after they have locked the row of the outbound mail.
 */

import { addressKey, domainOf } from '../../../shared/mail/address.ts'
import {
  type Approval,
  endApproval,
  findApproval,
  findApprovalOf,
} from '../../account/approvals.ts'
import { type Actor, writeAudit } from '../../account/audit.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { recordEvents } from '../../events/events.ts'
import { addJob } from '../../queue/jobs.ts'
import { queueWaitingReading } from '../messages/attachmentTexts.ts'
import { readMessageEvents } from '../messages/messageEvents.ts'
import { endUnsent, lockUnsent } from '../outbound/unsentMails.ts'

/**
 * Lists the choices of an owner who approves a mail under the send policy `approve-new`. The choice decides which later
 * mail needs no approval: mail to the same recipients, mail to their domains, or no mail.
 */
export const TRUSTS = ['recipients', 'domains', 'none'] as const
export type Trust = (typeof TRUSTS)[number]

export type HeldDecision =
  | {
      state: 'approved'
      /** Holds the SHA-256 of the bytes of the held mail that the owner saw. */
      hash: Buffer
      trust: Trust
    }
  | { state: 'rejected'; reason: string | null }
  | { state: 'expired' }

/**
 * Describes the result of an owner's decision. The kind `before` means that an earlier decision about the mail is
 * already recorded. The kind `changed` means that the bytes of the mail differ from the bytes that the owner saw. The
 * kind `late` means that the approval request for the mail has expired.
 */
export type DecisionEnd = { kind: 'done' | 'before' | 'changed' | 'late'; approval: Approval }

/**
 * Records the first decision about an approval request, and ignores every later decision. If two people decide at the
 * same time, only one decision counts. An approval counts only if it names the hash of the mail's bytes.
 * @param within is a function that runs in the transaction that records the decision.
 * @returns null if the project has no such approval request.
 */
export async function decideHeld(
  pool: Pool,
  actor: Actor,
  {
    id,
    decision,
    within,
  }: {
    id: string
    decision: HeldDecision
    within?: (db: Queryable) => Promise<void>
  },
): Promise<DecisionEnd | null> {
  return transaction(pool, async (db) => {
    const known = await findApproval(db, id)
    if (known?.kind !== 'mail' || known.projectId !== actor.projectId) return null
    const held = await lockUnsent(db, known.projectId, known.subject)
    const approval = await findApproval(db, id, { lock: true })
    if (approval === null) return null
    if (approval.state !== 'waiting') return { kind: 'before', approval }
    if (held === null) {
      // The function withdraws an approval request whose held mail is missing. Earlier versions could lose a held mail,
      // and its approval request then waited for ever.
      const withdrawn = await endApproval(db, id, { state: 'withdrawn', by: DELETED })
      return { kind: 'before', approval: withdrawn }
    }
    const about = { approval, messageRow: held.messageRow }
    if (decision.state === 'expired' || approval.isLate) {
      if (!approval.isLate) return { kind: 'before', approval }
      const expired = await endWithout(db, actor, about, { state: 'expired', reason: null })
      return { kind: decision.state === 'expired' ? 'done' : 'late', approval: expired }
    }
    if (decision.state === 'approved') {
      const hash = await storedHash(db, held.messageRow)
      if (hash === null || !hash.equals(decision.hash)) return { kind: 'changed', approval }
      await within?.(db)
      return { kind: 'done', approval: await release(db, actor, about, decision) }
    }
    await within?.(db)
    return { kind: 'done', approval: await endWithout(db, actor, about, decision) }
  })
}

/**
 * Returns the SHA-256 of the stored bytes of a message. Null means that the service has not composed the bytes of the
 * message yet.
 */
export async function storedHash(db: Queryable, messageRow: string): Promise<Buffer | null> {
  const { rows } = await db.query<{ hash: Buffer }>(
    `select coalesce(b.content_hash, sha256(r.bytes)) as hash
     from messages m join raw_mails r on r.id = m.raw_id left join blobs b on b.hash = r.blob where m.row = $1`,
    [messageRow],
  )
  return rows[0]?.hash ?? null
}

type Held = { approval: Approval; messageRow: string }

/** Releases an approved mail, which the service then sends at the scheduled time or at once. */
async function release(
  db: Queryable,
  actor: Actor,
  { approval, messageRow }: Held,
  { hash, trust }: { hash: Buffer; trust: Trust },
): Promise<Approval> {
  const { rows } = await db.query<{ run_at: Date; recipients: string[] }>(
    `with due as (
       select greatest(send_at, clock_timestamp()) as run_at, send_at > clock_timestamp() as waits
       from messages where row = $1
     ), freed as (
       update outbound_mails o set state = 'queued', approved_hash = $2, next_attempt_at = d.run_at,
         accepted_at = d.run_at
       from due d where o.message_row = $1
     ), shown as (
       update messages m set delivery_status = case when d.waits then 'scheduled' else 'queued' end,
         labels = array_remove(m.labels, 'held') || case when d.waits then '{scheduled}'::text[] else '{}' end
       from due d where m.row = $1
     )
     select d.run_at, array(select address from outbound_recipients
                            where message_row = $1 and state = 'queued') as recipients
     from due d`,
    [messageRow, hash],
  )
  const { run_at: runAt, recipients } = rows[0]!
  await learn(db, approval.projectId, recipients, trust)
  await addJob(db, {
    task: 'send_mail',
    payload: { messageRow },
    key: `send_mail:${messageRow}`,
    runAt,
  })
  await queueWaitingReading(db, approval.projectId, messageRow)
  const detail = `sha256:${hash.toString('hex')}`
  await writeAudit(db, actor, {
    action: 'approval.approve',
    subject: approval.subject,
    detail,
    outcome: 'ok',
  })
  return await endApproval(db, approval.id, {
    state: 'approved',
    by: actor.keyPrefix,
    contentHash: hash,
  })
}

async function learn(
  db: Queryable,
  projectId: string,
  recipients: readonly string[],
  trust: Trust,
): Promise<void> {
  if (trust === 'none') return
  const known = recipients.map((address) =>
    trust === 'domains' ? `@${domainOf(address)}` : addressKey(address),
  )
  await db.query(
    `insert into known_recipients (project_id, recipient)
     select distinct $1, recipient from unnest($2::text[]) r (recipient) order by 2 on conflict do nothing`,
    [projectId, known],
  )
}

const ENDS = {
  rejected: { action: 'approval.reject', error: 'rejected by the owner' },
  expired: { action: 'approval.expire', error: 'expired: nobody decided in time' },
} as const

/** Ends a held mail without sending the mail, and notifies the agent. */
async function endWithout(
  db: Queryable,
  actor: Actor,
  { approval, messageRow }: Held,
  { state, reason = null }: { state: 'rejected' | 'expired'; reason?: string | null },
): Promise<Approval> {
  const { action, error } = ENDS[state]
  await endUnsent(db, messageRow, {
    status: state,
    error: reason === null ? error : `${error}: ${reason}`,
  })
  await writeAudit(db, actor, {
    action,
    subject: approval.subject,
    ...(reason === null ? {} : { detail: reason }),
    outcome: 'ok',
  })
  const ended = await endApproval(db, approval.id, { state, by: actor.keyPrefix, reason })
  await tellOfHeld(db, messageRow, 'message.rejected')
  return ended
}

/**
 * Records an event of a mail that is held for approval. Callers call `tellOfHeld` last in their transaction, because it
 * locks the project's event stream.
 */
export async function tellOfHeld(
  db: Queryable,
  messageRow: string,
  type: 'message.held' | 'message.rejected',
): Promise<void> {
  const events = await readMessageEvents(db, [messageRow])
  await recordEvents(
    db,
    events.map(({ projectId, data, traceparent }) => ({ projectId, type, data, traceparent })),
  )
}

/**
 * Withdraws a held mail (a mail that waits for approval) when its agent asks for this. The caller has locked the row of
 * the outbound mail.
 */
export async function withdrawHeld(
  db: Queryable,
  actor: Actor,
  { messageRow, messageId }: { messageRow: string; messageId: string },
): Promise<'cancelled'> {
  const about = { projectId: actor.projectId, kind: 'mail', subject: messageId } as const
  const approval = await findApprovalOf(db, about)
  await endUnsent(db, messageRow, { status: 'cancelled', error: 'withdrawn before a decision' })
  await writeAudit(db, actor, { action: 'approval.withdraw', subject: messageId, outcome: 'ok' })
  if (approval !== null) {
    await endApproval(db, approval.id, { state: 'withdrawn', by: actor.keyPrefix })
  }
  return 'cancelled'
}

/**
 * Fills the column `decided_by` of an approval request that ended without a person, because its held mail was deleted.
 */
const DELETED = 'deleted'

/** Withdraws the approval requests of deleted messages. */
export async function withdrawDeleted(db: Queryable, rows: readonly string[]): Promise<void> {
  await db.query(
    `update approvals a set state = 'withdrawn', decided_by = '${DELETED}', decided_at = clock_timestamp()
     from messages m where m.row = any ($1::bigint[]) and m.delivery_status = 'held'
       and a.project_id = m.project_id and a.kind = 'mail' and a.subject = m.message_id and a.state = 'waiting'`,
    [rows],
  )
}
