/**
 * Stops a purse (a project's wallet) for its owner, and resumes a stopped purse. A stopped purse signs no payment, and
 * the service cancels its open payments.
 */
import type { Address, Hex } from 'viem'
import { cancellationDigest } from '../../shared/till/authorization.ts'
import { usdcNetwork } from '../../shared/till/usdc.ts'
import type { Keyring } from '../../shared/vault/envelope.ts'
import { type Actor, writeAudit } from '../account/audit.ts'
import { type Client, type Pool, type Queryable, transaction } from '../db.ts'
import { isHere } from '../till/watch/chainStatus.ts'
import { callsInTurn } from './callTurns.ts'
import { countPurseGas } from './purseGas.ts'
import { purseSigner } from './purses.ts'

/** Names the service as the actor of the automatic transfers out of a purse. */
export const PAYS_OUT = 'service'

/** Stops a purse, and signs a cancellation of each of its open payments. @returns false if the project has no purse. */
export function stopPurse(pool: Pool, keyring: Keyring, actor: Actor): Promise<boolean> {
  return transaction(pool, async (db) => {
    const { rowCount } = await db.query(
      `update purses set frozen_at = coalesce(frozen_at, clock_timestamp()), frozen_by = coalesce(frozen_by, $2)
       where project_id = $1`,
      [actor.projectId, actor.keyPrefix],
    )
    if (rowCount === 0) {
      await writeAudit(db, actor, { action: 'purse.stop', subject: null, outcome: 'not_found' })
      return false
    }
    const cancelled = await cancelOpen(db, keyring, actor.projectId, { kind: 'all' })
    const detail = `cancels ${cancelled} open payments`
    await writeAudit(db, actor, { action: 'purse.stop', subject: null, detail, outcome: 'ok' })
    return true
  })
}

/** Lets a stopped purse sign payments again. @returns false if the project has no purse. */
export function resumePurse(pool: Pool, actor: Actor): Promise<boolean> {
  return transaction(pool, async (db) => {
    const { rowCount } = await db.query(
      'update purses set frozen_at = null, frozen_by = null where project_id = $1',
      [actor.projectId],
    )
    const outcome = rowCount === 0 ? 'not_found' : 'ok'
    await writeAudit(db, actor, { action: 'purse.resume', subject: null, outcome })
    return rowCount !== 0
  })
}

/**
 * Names the open payments of a purse that the service cancels: all payments, the payments of one mandate (spending
 * limit), or the automatic payouts to the owner.
 */
export type Cancelled =
  | { kind: 'all' }
  | { kind: 'mandate'; mandateId: string }
  | { kind: 'payouts' }

const IS_CANCELLED: Record<Cancelled['kind'], string> = {
  all: '$2::text is null',
  mandate: `exists (
    select from purchase_mandates pm join mandates m on m.row = pm.mandate_row
    where pm.purchase_row = u.row and m.id = $2)`,
  // A transfer from a retired address (of an earlier key) to the purse itself does not count as a payout.
  payouts: `$2::text is null and u.kind = 'sweep' and u.asked_by = '${PAYS_OUT}' and not exists (
    select from purse_keys k where k.project_id = u.project_id and k.address = lower(u.pay_to))`,
}

/**
 * Signs the cancellations of open payments of a purse. Each payment stays open until the chain shows whether the payment
 * or its cancellation came first.
 * @returns the number of signed cancellations.
 */
export async function cancelOpen(
  db: Client,
  keyring: Keyring,
  projectId: string,
  which: Cancelled,
): Promise<number> {
  await db.query('select from purses where project_id = $1 for update', [projectId])
  type Row = { id: string; payer: Address; nonce: Hex; network: string; is_sent: boolean }
  const { rows } = await db.query<Row>(
    `select u.id, u.payer, u.nonce, u.network,
       ${isHere('u')} and u.valid_before > extract(epoch from clock_timestamp()) as is_sent
     from purchases u
     where u.project_id = $1 and u.money = 'open' and u.cancel_signature is null
       and ${IS_CANCELLED[which.kind]}
     order by u.row`,
    [projectId, which.kind === 'mandate' ? which.mandateId : null],
  )
  const signatures: Hex[] = []
  for (const { payer, nonce, network } of rows) {
    const signer = await purseSigner(db, keyring, { projectId, address: payer })
    const digest = cancellationDigest({ authorizer: payer, nonce }, usdcNetwork(network)!)
    signatures.push(await signer.sign(digest))
  }
  await db.query(
    `update purchases u set cancel_signature = g.signature, calls_sent = 0
     from unnest($1::text[], $2::text[]) g (id, signature) where u.id = g.id`,
    [rows.map(({ id }) => id), signatures],
  )
  // No gas wallet sends the cancellation of a payment that has expired, or that is on a former chain.
  await countPurseGas(db, projectId, rows.filter((row) => row.is_sent).length)
  return rows.length
}

/** Describes the signed cancellation of a payment, which a gas wallet must send to the chain. */
export type Cancellation = {
  id: string
  asset: Address
  payer: Address
  nonce: Hex
  signature: Hex
}

const TO_CANCEL = callsInTurn({
  waiting: `money = 'open' and cancel_signature is not null`,
  due: 'cancel_seen_at is null',
  sentAt: 'cancel_sent_at',
})

/** Takes the payment cancellations that the service must send to the chain now, and marks them as sent. */
export async function takeCancellations(
  db: Queryable,
  network: string,
  limit: number,
): Promise<Cancellation[]> {
  const { rows } = await db.query<Cancellation>({
    name: 'take-cancellations',
    text: `update purchases u set cancel_sent_at = clock_timestamp(), calls_sent = u.calls_sent + 1
           where u.row = any (array(${TO_CANCEL}))
           returning u.id, u.asset, u.payer, u.nonce, u.cancel_signature as signature`,
    values: [network, limit],
  })
  return rows
}
