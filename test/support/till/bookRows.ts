/** Makes refunds and transfers of a purse (a project's wallet) in a test database, as the account book lists them. */
import type { Pool } from '../../../sql/db.ts'
import { newHash, newPayment, settle } from './tillRows.ts'

/** Makes a payment that a stranger's transaction settled at the given time. */
export async function settledAt(pool: Pool, projectId: string, time: Date): Promise<string> {
  const id = await newPayment(pool, { projectId })
  await settle(pool, id, newHash())
  await moveTo(pool, id, time)
  return id
}

/** Sets the time at which a payment was settled. */
export const moveTo = (pool: Pool, id: string, time: Date) =>
  pool.query('update payments set settled_at = $2 where id = $1', [id, time])

/** Stores a refund that a seller paid by hand at the given time. */
export async function refundedAt(
  pool: Pool,
  { paymentId, time, state = 'spent' }: { paymentId: string; time: Date; state?: string },
): Promise<string> {
  const id = `hrf_${newHash()}`
  await pool.query(
    `insert into hand_refunds (id, project_id, payment_id, idempotency_key, request_hash, created_by, network, asset,
       payer, pay_to, amount_atomic, state, tx_hash, log_index, block_number, spent_at)
     select $1, project_id, id, $1, '\\x00', 'test', network, asset, recipient, payer, 4000, $3, $1,
       case when $3 = 'spent' then 1 end, 7, $4
     from payments where id = $2`,
    [id, paymentId, state, time],
  )
  return id
}

/** Stores a transfer of the purse (wallet) at the given time. */
export async function spentAt(
  pool: Pool,
  {
    projectId,
    kind,
    time,
    money = 'spent',
  }: { projectId: string; kind: 'payment' | 'refund' | 'sweep'; time: Date; money?: string },
): Promise<string> {
  const id = `pur_${newHash()}`
  await pool.query(
    `insert into purchases (id, project_id, kind, request_hash, state, method, host, path, max_atomic, asked_by, network,
       asset, payer, pay_to, amount_atomic, money, nonce, tx_hash, block_number, log_index, spent_at)
     values ($1, $2, $3, '\\x00', 'answered', 'GET', 'api.example', '/a', 300, 'test', 'base-sepolia', '0x1', '0x2', '0x3',
       300, $4, $1, $1, 7, 1, $5)`,
    [id, projectId, kind, money, time],
  )
  return id
}
