/** Payments that are claimed while no worker runs: the first worker finds them waiting together. */
import type { PrivateKeyAccount } from 'viem/accounts'
import type { Authorization } from '../../shared/till/x402.ts'
import type { Agent } from './service.ts'
import { pay, redeem, type SignedPayment, type TestTill } from './till.ts'
import { waitFor } from './waitFor.ts'

export type WaitingPayment = SignedPayment & { id: string }

/** The orders of payments: whose, and what differs from a common authorization. */
export type Order = { account?: PrivateKeyAccount; changes?: Partial<Authorization> }

/** Redeems each; all stay pending. The answer comes after SETTLEMENT_WAIT_MS. */
export const claimAll = (
  seller: Agent,
  orders: readonly Order[] | number,
): Promise<WaitingPayment[]> =>
  Promise.all(
    (typeof orders === 'number' ? Array.from({ length: orders }, (): Order => ({})) : orders).map(
      async ({ account, changes = {} }) => {
        const payment = await pay(changes, account === undefined ? {} : { account })
        const { body } = await redeem(seller, payment.header)
        if (body.reason !== 'settlement_pending') throw new Error(JSON.stringify(body))
        return { ...payment, id: body.paymentId as string }
      },
    ),
  )

/** The record of a payment, once it has this status. */
export const reaches = (seller: Agent, id: string, status: 'settled' | 'failed' | 'verified') =>
  waitFor(`status ${status}`, async () => {
    const { body } = await seller.get(`/v0/payments/${id}`)
    if (
      body.status !== status &&
      ['settled', 'failed'].includes(body.status) &&
      status !== 'verified'
    ) {
      throw new Error(`${body.status}: ${body.failureReason} ${body.failureDetail}`)
    }
    return body.status === status ? body : null
  })

/** Waits until the transaction of a payment was sent. */
export const inPool = (till: TestTill, id: string): Promise<`0x${string}`> =>
  waitFor('the transaction to be in the pool', async () => {
    const { rows } = await till.service.database.pool.query(
      `select t.hash from transaction_payments m join chain_transactions t on t.hash = m.hash
       where m.payment_id = $1 and t.state = 'open' and t.sent_at is not null and t.send_error is null`,
      [id],
    )
    return rows[0]?.hash ?? null
  })

/** The hashes of the transactions of payments, and how many payments each carries. */
export async function transactionsOf(
  till: TestTill,
  payments: readonly { id: string }[],
): Promise<{ hash: string; members: number; state: string }[]> {
  const { rows } = await till.service.database.pool.query(
    `select t.hash, t.state, count(*)::int as members
     from transaction_payments m join chain_transactions t on t.hash = m.hash
     where m.payment_id = any ($1) group by t.hash, t.state, t.nonce order by t.nonce`,
    [payments.map(({ id }) => id)],
  )
  return rows
}
