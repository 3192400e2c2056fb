/** Transfers out of a purse that the owner orders: a sweep of what is free, and refunds. A gas wallet sends them. */
import { createHash, randomBytes } from 'node:crypto'
import { type Address, getAddress, type Hex } from 'viem'
import { newPurchaseId } from '../../shared/ids.ts'
import { authorizationDigest } from '../../shared/till/authorization.ts'
import { type UsdcNetwork, usdcNetwork } from '../../shared/till/usdc.ts'
import type { Keyring } from '../../shared/vault/envelope.ts'
import { type Actor, writeAudit } from '../account/audit.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { purseSigner } from './purses.ts'
import { lockPurse } from './reserve.ts'

/** A gas wallet may be out of gas for a while. */
const VALID_S = 3_600n

type Ordered = {
  kind: 'sweep' | 'refund'
  key: string
  payTo: string
  amountAtomic: bigint
  refundOf: string | null
}

/** Signs and stores a transfer, in the transaction of its order. The caller holds the purse's lock and has its balance. */
async function order(
  db: Queryable,
  keyring: Keyring,
  actor: Actor,
  { address, network, ...ordered }: Ordered & { address: string; network: UsdcNetwork },
): Promise<string> {
  const { projectId } = actor
  const { kind, key, payTo, amountAtomic, refundOf } = ordered
  const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
  const validBefore = BigInt(Math.floor(Date.now() / 1000)) + VALID_S
  const authorization = {
    from: getAddress(address),
    to: getAddress(payTo),
    value: amountAtomic,
    validAfter: 0n,
    validBefore,
    nonce,
  }
  const signer = await purseSigner(db, keyring, { projectId, address })
  const signature = await signer.sign(authorizationDigest(authorization, network))
  const id = newPurchaseId()
  await db.query(
    `insert into purchases (id, project_id, kind, idempotency_key, request_hash, state, method, host, path, max_atomic,
       asked_by, network, asset, pay_to, amount_atomic, money, payer, nonce, valid_before, signed_block, reserved_at,
       transfer_signature, refund_of, ended_at)
     values ($1, $2, $3, $4, $5, 'signed', '', '', '', $6, $7, $8, $9, $10, $6, 'open', $11, $12, $13,
       (select head_number from chain_status), clock_timestamp(), $14, $15, clock_timestamp())`,
    [
      ...[
        id,
        projectId,
        kind,
        `${kind}:${key}`,
        hashOf(ordered),
        String(amountAtomic),
        actor.keyPrefix,
      ],
      ...[network.network, network.usdcAddress.toLowerCase(), payTo.toLowerCase()],
      ...[address, nonce, String(validBefore), signature, refundOf],
    ],
  )
  const detail = `${amountAtomic} to ${payTo}${refundOf === null ? '' : `, a refund of ${refundOf}`}`
  await writeAudit(db, actor, { action: `purse.${kind}`, subject: id, detail, outcome: 'ok' })
  return id
}

const hashOf = ({ kind, payTo, amountAtomic, refundOf }: Ordered): Buffer =>
  createHash('sha256')
    .update(JSON.stringify([kind, payTo.toLowerCase(), String(amountAtomic), refundOf]))
    .digest()

async function chainOf(db: Queryable): Promise<UsdcNetwork | null> {
  const { rows } = await db.query<{ network: string | null }>('select network from chain_status')
  return usdcNetwork(rows[0]?.network ?? '') ?? null
}

export type Sweep =
  | { kind: 'ok'; id: string; amountAtomic: bigint }
  | { kind: 'no_purse' | 'no_chain' | 'nothing_free' }

/** Sends all that is free to an address. What is signed and open stays. */
export function sweepPurse(
  pool: Pool,
  keyring: Keyring,
  actor: Actor,
  payTo: Address,
): Promise<Sweep> {
  return transaction(pool, async (db) => {
    const purse = await lockPurse(db, actor.projectId)
    if (purse === null) return { kind: 'no_purse' }
    const network = await chainOf(db)
    if (network === null) return { kind: 'no_chain' }
    const { address, freeAtomic: amountAtomic } = purse
    if (amountAtomic <= 0n) return { kind: 'nothing_free' }
    const key = randomBytes(16).toString('hex')
    const ordered = { kind: 'sweep', key, payTo, amountAtomic, refundOf: null } as const
    const id = await order(db, keyring, actor, { ...ordered, address, network })
    return { kind: 'ok', id, amountAtomic }
  })
}

/** The refunds of a payment, open and spent, in atomic units. */
export type Refund = {
  id: string
  amountAtomic: bigint
  money: 'open' | 'spent' | 'released'
  txHash: string | null
  isFinal: boolean
}

export type Refunded =
  | { kind: 'ok'; refund: Refund; payer: string }
  | { kind: 'not_found' | 'other_request' | 'not_final' | 'too_much' | 'insufficient_funds' }
  /** The project's purse is not the payee: the seller pays back by hand. */
  | { kind: 'by_hand'; payer: string }

/**
 * Pays back a part of a final payment to its payer. The lock of the payment makes the sum exact: refunds that are open or
 * spent never exceed it.
 * @param refund.key the Idempotency-Key: the same one finds the first refund.
 */
export function refundPayment(
  pool: Pool,
  keyring: Keyring,
  { keyPrefix, requestId }: Omit<Actor, 'projectId'>,
  { paymentId, amountAtomic, key }: { paymentId: string; amountAtomic: bigint; key: string },
): Promise<Refunded> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{
      project_id: string
      payer: string
      recipient: string
      amount_atomic: string
      network: string
      is_final: boolean
    }>(
      `select p.project_id, p.payer, p.recipient, p.amount_atomic, p.network,
         p.state = 'settled' and p.finalized_at is not null as is_final
       from payments p join projects j on j.id = p.project_id
       where p.id = $1 and j.deleted_at is null for no key update of p`,
      [paymentId],
    )
    const payment = rows[0]
    if (payment === undefined) return { kind: 'not_found' }
    const { project_id: projectId, payer, recipient } = payment
    const ordered = {
      kind: 'refund',
      key,
      payTo: payer,
      amountAtomic,
      refundOf: paymentId,
    } as const
    const before = await db.query<{ id: string; request_hash: Buffer }>(
      'select id, request_hash from purchases where project_id = $1 and idempotency_key = $2',
      [projectId, `refund:${key}`],
    )
    if (before.rows[0] !== undefined) {
      if (!before.rows[0].request_hash.equals(hashOf(ordered))) return { kind: 'other_request' }
      const all = await listRefunds(db, paymentId)
      return { kind: 'ok', payer, refund: all.find(({ id }) => id === before.rows[0]!.id)! }
    }
    if (!payment.is_final) return { kind: 'not_final' }
    const given = (await listRefunds(db, paymentId))
      .filter(({ money }) => money !== 'released')
      .reduce((sum, refund) => sum + refund.amountAtomic, 0n)
    if (given + amountAtomic > BigInt(payment.amount_atomic)) return { kind: 'too_much' }
    const purse = await lockPurse(db, projectId)
    if (purse?.address !== recipient.toLowerCase()) return { kind: 'by_hand', payer }
    if (purse.freeAtomic < amountAtomic) return { kind: 'insufficient_funds' }
    const actor = { projectId, keyPrefix, requestId }
    const network = usdcNetwork(payment.network)!
    const id = await order(db, keyring, actor, { ...ordered, address: purse.address, network })
    const refund: Refund = { id, amountAtomic, money: 'open', txHash: null, isFinal: false }
    return { kind: 'ok', refund, payer }
  })
}

/** The refunds of a payment, oldest first. */
export async function listRefunds(db: Queryable, paymentId: string): Promise<Refund[]> {
  const { rows } = await db.query<{
    id: string
    amount_atomic: string
    money: Refund['money']
    tx_hash: string | null
    final_at: Date | null
  }>(
    'select id, amount_atomic, money, tx_hash, final_at from purchases where refund_of = $1 order by row',
    [paymentId],
  )
  return rows.map((row) => ({
    id: row.id,
    amountAtomic: BigInt(row.amount_atomic),
    money: row.money,
    txHash: row.tx_hash,
    isFinal: row.final_at !== null,
  }))
}

/** A transfer to send. */
export type TransferOut = {
  asset: Address
  payer: Address
  recipient: Address
  amountAtomic: bigint
  validAfter: bigint
  validBefore: bigint
  nonce: Hex
  signature: Hex
}

const SEND_AGAIN = '30 seconds'

/** Takes transfers that are to be sent now, and marks them as sent. */
export async function takeTransfers(
  db: Queryable,
  network: string,
  limit: number,
): Promise<TransferOut[]> {
  const { rows } = await db.query<{
    asset: Address
    payer: Address
    pay_to: Address
    amount_atomic: string
    valid_before: string
    nonce: Hex
    transfer_signature: Hex
  }>({
    name: 'take-transfers-out',
    text: `update purchases u set transfer_sent_at = clock_timestamp()
           where u.row = any (array(
             select row from purchases
             where money = 'open' and transfer_signature is not null and cancel_signature is null and network = $1
               and valid_before > extract(epoch from clock_timestamp())
               and (transfer_sent_at is null or transfer_sent_at < clock_timestamp() - interval '${SEND_AGAIN}')
             order by transfer_sent_at nulls first limit $2 for update skip locked))
           returning u.asset, u.payer, u.pay_to, u.amount_atomic, u.valid_before, u.nonce, u.transfer_signature`,
    values: [network, limit],
  })
  return rows.map((row) => ({
    asset: row.asset,
    payer: row.payer,
    recipient: row.pay_to,
    amountAtomic: BigInt(row.amount_atomic),
    validAfter: 0n,
    validBefore: BigInt(row.valid_before),
    nonce: row.nonce,
    signature: row.transfer_signature,
  }))
}
