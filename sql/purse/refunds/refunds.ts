/**
 * Stores refunds of payments. A refund pays money back to the payer. It is a transfer out of a purse, or a transfer
 * that a seller sends by hand and that the chain proves. The sum of the expected, open and spent refunds of a payment
 * never exceeds its amount.
 */
import type { Hex } from 'viem'
import { newHandRefundId } from '../../../shared/ids.ts'
import { usdcNetwork } from '../../../shared/till/usdc.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { type Actor, writeAudit } from '../../account/audit.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { lockPurse } from '../purchases/reserve.ts'
import { isPurseAddress } from '../purses.ts'
import { chainOf, hashOf, type Ordered, order, orderKey } from '../transferOut.ts'

/**
 * Describes a refund and its state. The state `by_hand` means that the seller must send the refund. The state
 * `checking` means that a worker process must still find the named transaction on the chain.
 */
export type Refund = {
  id: string
  state: 'by_hand' | 'checking' | 'open' | 'spent' | 'released'
  amountAtomic: bigint
  payTo: string
  txHash: string | null
  isFinal: boolean
  /** Tells why the last named transaction of the seller does not count as the refund. */
  reason: string | null
  /** Holds the signed receipt of the refund as JSON. */
  receipt: string | null
}

/**
 * Limits the refunds of one payment, because the operator pays the gas of each refund out of a purse, and tiny refunds
 * would cost the seller nothing.
 */
export const REFUNDS_MAX = 20

export type Refunded =
  | { kind: 'ok'; refund: Refund }
  | {
      kind:
        | 'not_found'
        | 'other_request'
        | 'not_final'
        | 'too_much'
        | 'too_many'
        | 'other_chain'
        | 'insufficient_funds'
        | 'too_much_gas'
        | 'payee_denied'
    }

/**
 * Pays a part of a payment back to the payer. The block of the payment must be final. The function locks the payment's
 * row, so that the sum of its refunds is exact. If the payment did not go to a purse of the project, the seller must
 * send the refund by hand.
 * @param refund.key is the Idempotency-Key of the refund call. A call with the same key as an earlier call finds the
 * first refund.
 * @param refund.deniedPayees lists the addresses that no purse pays, in lower case.
 * @param refund.dailyGas limits the gas of the purse's calls in a day, unless the project has its own limit.
 */
export function refundPayment(
  pool: Pool,
  keyring: Keyring,
  { keyPrefix, requestId }: Omit<Actor, 'projectId'>,
  {
    paymentId,
    amountAtomic,
    key,
    deniedPayees,
    dailyGas,
  }: {
    paymentId: string
    amountAtomic: bigint
    key: string
    deniedPayees: readonly string[]
    dailyGas: number | null
  },
): Promise<Refunded> {
  return transaction(pool, async (db) => {
    const payment = await lockPayment(db, paymentId)
    if (payment === undefined) return { kind: 'not_found' }
    const { project_id: projectId, payer, recipient } = payment
    const ordered: Ordered = {
      kind: 'refund',
      key,
      payTo: payer,
      amountAtomic,
      refundOf: paymentId,
    }
    const all = await listRefunds(db, paymentId)
    // With the advisory lock, refunds with the same Idempotency-Key wait for each other, because the lock of the
    // payment's row would not stop a refund of another payment with the same key.
    await db.query(
      `select pg_advisory_xact_lock(hashtextextended('refund ' || $1 || ' ' || $2, 0))`,
      [projectId, key],
    )
    const before = await findByKey(db, projectId, key)
    if (before !== null) {
      const refund = all.find(({ id }) => id === before.id)
      if (refund === undefined || !before.hash.equals(hashOf(ordered)))
        return { kind: 'other_request' }
      return { kind: 'ok', refund }
    }
    if (!payment.is_final) return { kind: 'not_final' }
    if (all.length >= REFUNDS_MAX) return { kind: 'too_many' }
    const given = all
      .filter(({ state }) => state !== 'released')
      .reduce((sum, refund) => sum + refund.amountAtomic, 0n)
    if (given + amountAtomic > BigInt(payment.amount_atomic)) return { kind: 'too_much' }
    if (await isOnFormerChain(db, payment)) return { kind: 'other_chain' }
    const network = usdcNetwork(payment.network)!
    const actor = { projectId, keyPrefix, requestId }
    const purse = await lockPurse(db, projectId)
    const refund: Refund = {
      id: '',
      state: 'open',
      amountAtomic,
      payTo: payer.toLowerCase(),
      ...{ txHash: null, isFinal: false, reason: null, receipt: null },
    }
    if (purse === null || !(await isPurseAddress(db, projectId, recipient))) {
      const id = newHandRefundId()
      await db.query(
        `insert into hand_refunds (id, project_id, payment_id, idempotency_key, request_hash, created_by, network, asset,
           payer, pay_to, amount_atomic)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
        [
          ...[id, projectId, paymentId, key, hashOf(ordered), keyPrefix, network.network],
          ...[network.usdcAddress.toLowerCase(), recipient.toLowerCase(), payer.toLowerCase()],
          String(amountAtomic),
        ],
      )
      const detail = `${amountAtomic} to ${payer}, a refund of ${paymentId}`
      await writeAudit(db, actor, { action: 'refund.expect', subject: id, detail, outcome: 'ok' })
      return { kind: 'ok', refund: { ...refund, id, state: 'by_hand' } }
    }
    if (deniedPayees.includes(payer.toLowerCase())) return { kind: 'payee_denied' }
    if (purse.freeAtomic < amountAtomic) return { kind: 'insufficient_funds' }
    const id = await order(db, keyring, actor, {
      ...ordered,
      ...{ address: purse.address, network, limit: { dailyGas } },
    })
    if (id === null) return { kind: 'too_much_gas' }
    return { kind: 'ok', refund: { ...refund, id } }
  })
}

/** Tells whether a payment is on a former chain of the service, on which no worker can send or prove a refund. */
async function isOnFormerChain(
  db: Queryable,
  { network }: Pick<PaymentRow, 'network'>,
): Promise<boolean> {
  const present = await chainOf(db)
  return present !== null && present.network !== network
}

type PaymentRow = {
  project_id: string
  payer: string
  recipient: string
  amount_atomic: string
  network: string
  is_final: boolean
}

async function lockPayment(db: Queryable, paymentId: string): Promise<PaymentRow | undefined> {
  const { rows } = await db.query<PaymentRow>(
    `select p.project_id, p.payer, p.recipient, p.amount_atomic, p.network,
       p.state = 'settled' and p.finalized_at is not null as is_final
     from payments p join projects j on j.id = p.project_id
     where p.id = $1 and j.deleted_at is null for no key update of p`,
    [paymentId],
  )
  return rows[0]
}

async function findByKey(
  db: Queryable,
  projectId: string,
  key: string,
): Promise<{ id: string; hash: Buffer } | null> {
  const { rows } = await db.query<{ id: string; hash: Buffer }>(
    `select id, request_hash as hash from purchases
     where project_id = $1 and kind = 'refund' and idempotency_key in ($2, 'refund:' || $3)
     union all select id, request_hash from hand_refunds where project_id = $1 and idempotency_key = $3`,
    [projectId, orderKey('refund', key), key],
  )
  return rows[0] ?? null
}

/** Lists the refunds of a payment, oldest first. */
export async function listRefunds(db: Queryable, paymentId: string): Promise<Refund[]> {
  const { rows } = await db.query<{
    id: string
    amount_atomic: string
    pay_to: string
    state: Refund['state']
    tx_hash: string | null
    final_at: Date | null
    reason: string | null
    receipt: string | null
  }>(REFUNDS_OF, [paymentId])
  return rows.map((row) => ({
    id: row.id,
    state: row.state,
    amountAtomic: BigInt(row.amount_atomic),
    payTo: row.pay_to,
    txHash: row.tx_hash,
    isFinal: row.final_at !== null,
    reason: row.reason,
    // A reorganisation may have removed the transfer of a refund from the chain. The refund then shows no receipt.
    receipt: row.state === 'spent' ? row.receipt : null,
  }))
}

const REFUNDS_OF = `
  select id, amount_atomic, pay_to, money as state, tx_hash, final_at, null as reason, receipt, created_at
  from purchases where refund_of = $1
  union all
  select id, amount_atomic, pay_to,
    case state when 'expected' then 'by_hand' when 'claimed' then 'checking' when 'withdrawn' then 'released' else state end,
    tx_hash, final_at, reason, receipt, created_at
  from hand_refunds where payment_id = $1
  order by created_at, id`

/** Lists the refunds that sellers of this service made for a purchase, oldest first. */
export async function refundsOfPurchase(
  db: Queryable,
  { payer, nonce, network }: { payer: string; nonce: string; network: string },
): Promise<Refund[]> {
  const { chainId, usdcAddress } = usdcNetwork(network)!
  const { rows } = await db.query<{ id: string }>({
    name: 'find-sale-of-purchase',
    text: `select id from payments
           where chain_id = $1 and asset = $2 and lower(payer) = $3 and authorization_nonce = $4`,
    values: [chainId, usdcAddress, payer, nonce],
  })
  if (rows[0] === undefined) return []
  const all = await listRefunds(db, rows[0].id)
  return all.filter(({ state }) => state === 'open' || state === 'spent')
}

export type HandRefundChange = 'ok' | 'not_found' | 'not_by_hand' | 'proved' | 'other_chain'

/**
 * Records the transaction that the seller names as the transfer of a refund. A worker process then searches for the
 * named transaction on the chain.
 */
export function claimRefund(
  pool: Pool,
  actor: Omit<Actor, 'projectId'>,
  { paymentId, refundId, txHash }: { paymentId: string; refundId: string; txHash: Hex },
): Promise<HandRefundChange> {
  return change(
    pool,
    actor,
    { paymentId, refundId, action: 'refund.claim', detail: txHash },
    {
      isProvable: true,
      set: `state = 'claimed', tx_hash = $2, claimed_at = clock_timestamp(), reason = null`,
      values: [txHash.toLowerCase()],
    },
  )
}

/** Withdraws a refund that the seller should have sent by hand but has not sent. */
export function withdrawRefund(
  pool: Pool,
  actor: Omit<Actor, 'projectId'>,
  { paymentId, refundId }: { paymentId: string; refundId: string },
): Promise<HandRefundChange> {
  return change(
    pool,
    actor,
    { paymentId, refundId, action: 'refund.withdraw', detail: '' },
    {
      isProvable: false,
      set: `state = 'withdrawn', tx_hash = null`,
      values: [],
    },
  )
}

function change(
  pool: Pool,
  { keyPrefix, requestId }: Omit<Actor, 'projectId'>,
  about: { paymentId: string; refundId: string; action: string; detail: string },
  { isProvable, set, values }: { isProvable: boolean; set: string; values: string[] },
): Promise<HandRefundChange> {
  const { paymentId, refundId, action, detail } = about
  return transaction(pool, async (db) => {
    const payment = await lockPayment(db, paymentId)
    if (payment === undefined) return 'not_found'
    const found = (await listRefunds(db, paymentId)).find(({ id }) => id === refundId)
    if (found === undefined) return 'not_found'
    if (!refundId.startsWith('rfd_')) return 'not_by_hand'
    if (isProvable && (await isOnFormerChain(db, payment))) return 'other_chain'
    const { rowCount } = await db.query(
      `update hand_refunds set ${set} where id = $1 and state in ('expected', 'claimed')`,
      [refundId, ...values],
    )
    if (rowCount === 0) return 'proved'
    const actor = { projectId: payment.project_id, keyPrefix, requestId }
    await writeAudit(db, actor, { action, subject: refundId, detail, outcome: 'ok' })
    return 'ok'
  })
}
