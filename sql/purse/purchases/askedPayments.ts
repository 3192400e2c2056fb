/**
 * Stores payments that wait for the owner's approval. The following functions change the approval request and the
 * purchase together, after they have locked the purchase.
 */
import { newApprovalId } from '../../../shared/ids.ts'
import type { Offer } from '../../../shared/purse/offers.ts'
import { type RefusalReason, refusalText } from '../../../shared/purse/refusal.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import type { UseRequest } from '../../../shared/vault/useRequest.ts'
import { type Approval, endApproval, findApproval } from '../../account/approvals.ts'
import { type Actor, writeAudit } from '../../account/audit.ts'
import { CHANGES_CHANNEL } from '../../changes.ts'
import { type Client, type Pool, type Queryable, transaction } from '../../db.ts'
import { recordEvents } from '../../events/events.ts'
import { addJob } from '../../queue/jobs.ts'
import { CONTENT, type ContentRow, openContent } from './purchaseContent.ts'
import { queuePurchase } from './purchaseJobs.ts'
import { purchaseEvent, storeTerms } from './purchaseSteps.ts'
import { PURCHASE_COLUMNS, type PurchaseRow } from './purchases.ts'
import type { AskReason } from './reserve.ts'

/**
 * Makes a purchase wait until its owner approves the payment. The function stores the approval request, its event, and
 * two jobs. One job notifies the owner. The other ends the approval request when its time is over.
 */
export function askOwner(
  pool: Pool,
  asked: { id: string; offer: Offer; reason: AskReason; hash: Buffer },
): Promise<void> {
  const { id, offer, reason, hash } = asked
  return transaction(pool, async (db) => {
    const { rowCount } = await db.query(
      `update purchases set state = 'waiting', asked_for = $2, asked_hash = $3 where id = $1 and state = 'asking'`,
      [id, reason, hash],
    )
    if (rowCount === 0) return
    const row = await storeTerms(db, id, offer)
    const approvalId = newApprovalId()
    const { rows } = await db.query<{ expires_at: Date }>(
      `insert into approvals (id, project_id, kind, subject, requested_at, expires_at, announced_at)
       select $1, p.id, 'payment', $3, t.now, t.now + make_interval(hours => p.approval_hours), t.now
       from projects p, (select clock_timestamp()::timestamptz(3) as now) t where p.id = $2
       returning expires_at`,
      [approvalId, row.project_id, id],
    )
    const payload = { approvalId }
    await addJob(db, { task: 'announce_approval', payload, key: `announce_approval:${approvalId}` })
    await addJob(db, {
      task: 'expire_approval',
      payload,
      key: `expire_approval:${approvalId}`,
      runAt: rows[0]!.expires_at,
    })
    await db.query(`select pg_notify('${CHANGES_CHANNEL}', $1)`, [id])
    const data = { ...purchaseEvent(row), reason }
    await recordEvents(db, [{ projectId: row.project_id, type: 'purse.asked', data }])
  })
}

export type PaymentDecision =
  /** Approves the payment. The field `hash` is the SHA-256 of the payment terms that the owner saw. */
  | { state: 'approved'; hash: Buffer }
  | { state: 'rejected'; reason: string | null }
  | { state: 'expired' }

/**
 * Describes the result of a decision about a payment. The result `before` means that an earlier decision of the owner
 * is already recorded. The result `changed` means that the payment terms differ from the terms that the owner saw. The
 * result `late` means that the approval request had expired before the owner's decision.
 */
export type PaymentDecisionEnd = {
  kind: 'done' | 'before' | 'changed' | 'late'
  approval: Approval
}

/**
 * Records the owner's decision about the approval request of a payment, at most once. After an approval, a worker
 * process asks the seller for the payment terms again, and signs only terms with the approved hash.
 * @param within is a function that runs in the transaction that records the decision.
 * @returns null if the project has no such approval request.
 */
export function decidePayment(
  pool: Pool,
  actor: Actor,
  wanted: { id: string; decision: PaymentDecision; within?: (db: Client) => Promise<void> },
): Promise<PaymentDecisionEnd | null> {
  const { id, decision } = wanted
  return transaction(pool, async (db) => {
    const known = await findApproval(db, id)
    if (known?.kind !== 'payment' || known.projectId !== actor.projectId) return null
    const { rows } = await db.query<PurchaseRow & { asked_hash: Buffer }>(
      `select ${PURCHASE_COLUMNS}, u.asked_hash from purchases u where u.id = $1 for update of u`,
      [known.subject],
    )
    const purchase = rows[0]
    const approval = await findApproval(db, id, { lock: true })
    if (approval === null) return null
    if (purchase?.state !== 'waiting' || approval.state !== 'waiting') {
      return { kind: 'before', approval }
    }
    if (decision.state === 'expired' || approval.isLate) {
      if (!approval.isLate) return { kind: 'before', approval }
      const expired = await end(db, actor, { approval, purchase, state: 'expired', reason: null })
      return { kind: decision.state === 'expired' ? 'done' : 'late', approval: expired }
    }
    if (decision.state === 'approved' && !purchase.asked_hash.equals(decision.hash)) {
      return { kind: 'changed', approval }
    }
    await wanted.within?.(db)
    const done =
      decision.state === 'approved'
        ? await release(db, actor, { approval, hash: decision.hash })
        : await end(db, actor, { approval, purchase, ...decision })
    return { kind: 'done', approval: done }
  })
}

async function release(
  db: Queryable,
  actor: Actor,
  { approval, hash }: { approval: Approval; hash: Buffer },
): Promise<Approval> {
  const { subject: purchaseId } = approval
  await db.query(`update purchases set state = 'queued', approved_hash = $2 where id = $1`, [
    purchaseId,
    hash,
  ])
  await queuePurchase(db, purchaseId)
  const detail = `sha256:${hash.toString('hex')}`
  await writeAudit(db, actor, {
    action: 'payment.approve',
    subject: purchaseId,
    detail,
    outcome: 'ok',
  })
  const by = actor.keyPrefix
  return await endApproval(db, approval.id, { state: 'approved', by, contentHash: hash })
}

const ENDS: Record<'rejected' | 'expired', { action: string; reason: RefusalReason }> = {
  rejected: { action: 'payment.reject', reason: 'rejected' },
  expired: { action: 'payment.expire', reason: 'approval_expired' },
}

async function end(
  db: Queryable,
  actor: Actor,
  ended: {
    approval: Approval
    purchase: PurchaseRow
    state: 'rejected' | 'expired'
    reason: string | null
  },
): Promise<Approval> {
  const { approval, purchase, state, reason } = ended
  const { action, reason: word } = ENDS[state]
  const detail = reason === null ? refusalText(word) : `${refusalText(word)}: ${reason}`
  const { rows } = await db.query<PurchaseRow>(
    `update purchases u set state = 'refused', reason = $2, detail = $3, ended_at = clock_timestamp(), key_id = null,
       wrapped_key = null, ciphertext = null
     where u.id = $1 returning ${PURCHASE_COLUMNS}`,
    [purchase.id, word, detail.slice(0, 500)],
  )
  await writeAudit(db, actor, {
    action,
    subject: purchase.id,
    ...(reason === null ? {} : { detail: reason }),
    outcome: 'ok',
  })
  const done = await endApproval(db, approval.id, { state, by: actor.keyPrefix, reason })
  await db.query(`select pg_notify('${CHANGES_CHANNEL}', $1)`, [purchase.id])
  const data = purchaseEvent(rows[0]!)
  await recordEvents(db, [{ projectId: purchase.project_id, type: 'purse.refused', data }])
  return done
}

/**
 * Holds the reason why the service asks the owner about a payment, and the hash of the payment terms that the owner
 * sees.
 */
export type AskedPayment = { askedFor: AskReason; hash: Buffer }

/**
 * Returns the reason of the approval request and the hash of the payment terms for the given purchases. The result
 * contains only purchases that needed the owner's approval.
 */
export async function readAsked(
  db: Queryable,
  projectId: string,
  purchaseIds: readonly string[],
): Promise<Map<string, AskedPayment>> {
  const { rows } = await db.query<{ id: string; asked_for: AskReason; asked_hash: Buffer }>(
    `select id, asked_for, asked_hash from purchases where project_id = $1 and id = any ($2) and asked_hash is not null`,
    [projectId, purchaseIds],
  )
  return new Map(
    rows.map(({ id, asked_for: askedFor, asked_hash: hash }) => [id, { askedFor, hash }]),
  )
}

/** Returns the request of a purchase that waits for the owner's approval. @returns null if the purchase does not wait. */
export async function readWaitingRequest(
  db: Queryable,
  keyring: Keyring,
  { projectId, id }: { projectId: string; id: string },
): Promise<UseRequest | null> {
  const { rows } = await db.query<ContentRow>(
    `select id, project_id, content_version, key_id, wrapped_key, ciphertext from purchases
     where project_id = $1 and id = $2 and state = 'waiting'`,
    [projectId, id],
  )
  return rows[0] === undefined ? null : openContent<UseRequest>(keyring, rows[0], CONTENT.request)
}
