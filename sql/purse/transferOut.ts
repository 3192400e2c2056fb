/**
 * Requests transfers out of a purse for its owner. The owner can withdraw all money that is not reserved (a sweep), or
 * refund a payment (refunds/). A gas wallet of the service sends these transfers to the chain.
 */
import { createHash, randomBytes } from 'node:crypto'
import { type Address, getAddress, type Hex } from 'viem'
import { newPurchaseId } from '../../shared/ids.ts'
import { authorizationDigest } from '../../shared/till/authorization.ts'
import { type UsdcNetwork, usdcNetwork } from '../../shared/till/usdc.ts'
import type { Keyring } from '../../shared/vault/envelope.ts'
import { type Actor, writeAudit } from '../account/audit.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { callsInTurn } from './callTurns.ts'
import { lockPurse } from './purchases/reserve.ts'
import { countPurseGas, type GasLimit, isPurseGasUsedUp } from './purseGas.ts'
import { purseSigner } from './purses.ts'

/**
 * Sets the number of seconds for which the signature of a transfer out of a purse is valid. The time is long, because a
 * gas wallet may be out of gas for a while.
 */
const VALID_S = 3_600n

export type Ordered = {
  kind: 'sweep' | 'refund'
  key: string
  payTo: string
  amountAtomic: bigint
  refundOf: string | null
}

/**
 * Signs and stores a transfer out of a purse, in the database transaction that requests the transfer. The caller must
 * have locked the purse and read its balance.
 * @returns the id of the transfer, or null if the purse has used up its gas of the day.
 */
export async function order(
  db: Queryable,
  keyring: Keyring,
  actor: Actor,
  { limit, ...wanted }: Ordered & { address: string; network: UsdcNetwork; limit: GasLimit },
): Promise<string | null> {
  const isLimited = limit !== 'exempt'
  if (isLimited && (await isPurseGasUsedUp(db, actor.projectId, limit.dailyGas))) return null
  return signTransfer(db, keyring, actor, wanted)
}

async function signTransfer(
  db: Queryable,
  keyring: Keyring,
  actor: Actor,
  { address, network, ...ordered }: Ordered & { address: string; network: UsdcNetwork },
): Promise<string> {
  const { projectId } = actor
  const { kind, key, payTo, amountAtomic, refundOf } = ordered
  const signer = await purseSigner(db, keyring, { projectId, address })
  const nonce = signer.nonceOf(orderKey(kind, key))
  const validBefore = BigInt(Math.floor(Date.now() / 1000)) + VALID_S
  const authorization = {
    from: getAddress(address),
    to: getAddress(payTo),
    value: amountAtomic,
    validAfter: 0n,
    validBefore,
    nonce,
  }
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
        orderKey(kind, key),
        hashOf(ordered),
        String(amountAtomic),
        actor.keyPrefix,
      ],
      ...[network.network, network.usdcAddress.toLowerCase(), payTo.toLowerCase()],
      ...[address, nonce, String(validBefore), signature, refundOf],
    ],
  )
  await countPurseGas(db, projectId, 1)
  const detail = `${amountAtomic} to ${payTo}${refundOf === null ? '' : `, a refund of ${refundOf}`}`
  await writeAudit(db, actor, { action: `purse.${kind}`, subject: id, detail, outcome: 'ok' })
  return id
}

/**
 * Returns the key under which a transfer is stored among the purchases of its project. It contains a space, so it
 * differs from every key of an agent. It contains a hash, so it is not longer than a key of a client may be.
 */
export const orderKey = (kind: Ordered['kind'], key: string): string =>
  `${kind} ${createHash('sha256').update(key).digest('hex')}`

export const hashOf = ({ kind, payTo, amountAtomic, refundOf }: Ordered): Buffer =>
  createHash('sha256')
    .update(JSON.stringify([kind, payTo.toLowerCase(), String(amountAtomic), refundOf]))
    .digest()

/**
 * Returns the blockchain that the service uses. Null means that the payment workers have not reached the chain's RPC
 * node yet.
 */
export async function chainOf(db: Queryable): Promise<UsdcNetwork | null> {
  const { rows } = await db.query<{ network: string | null }>('select network from chain_status')
  return usdcNetwork(rows[0]?.network ?? '') ?? null
}

export type Sweep =
  | { kind: 'ok'; id: string; amountAtomic: bigint }
  | { kind: 'no_purse' | 'no_chain' | 'nothing_free' }

/**
 * Sends all money of a purse that is not reserved to an address. The reserved part of the balance stays in the purse to
 * cover signed open payments. Only the operator sweeps a purse, so the transfer ignores the daily gas of the project.
 */
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
    const id = await signTransfer(db, keyring, actor, { ...ordered, address, network })
    return { kind: 'ok', id, amountAtomic }
  })
}

/** Describes a signed transfer out of a purse that a gas wallet must send to the chain. */
export type TransferOut = {
  id: string
  asset: Address
  payer: Address
  recipient: Address
  amountAtomic: bigint
  validAfter: bigint
  validBefore: bigint
  nonce: Hex
  signature: Hex
}

const TO_SEND = callsInTurn({
  waiting: `money = 'open' and transfer_signature is not null`,
  due: 'cancel_signature is null',
  sentAt: 'transfer_sent_at',
})

/** Takes the transfers out of purses that the service must send to the chain now, and marks these transfers as sent. */
export async function takeTransfers(
  db: Queryable,
  network: string,
  limit: number,
): Promise<TransferOut[]> {
  const { rows } = await db.query<{
    id: string
    asset: Address
    payer: Address
    pay_to: Address
    amount_atomic: string
    valid_before: string
    nonce: Hex
    transfer_signature: Hex
  }>({
    name: 'take-transfers-out',
    text: `update purchases u set transfer_sent_at = clock_timestamp(), calls_sent = u.calls_sent + 1
           where u.row = any (array(${TO_SEND}))
           returning u.id, u.asset, u.payer, u.pay_to, u.amount_atomic, u.valid_before, u.nonce, u.transfer_signature`,
    values: [network, limit],
  })
  return rows.map((row) => ({
    id: row.id,
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
