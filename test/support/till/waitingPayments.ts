/** Claims (stores) payments while no worker runs, so that the first worker finds all of them in the queue. */
import type { PrivateKeyAccount } from 'viem/accounts'
import type { Authorization } from '../../../shared/till/x402.ts'
import type { Agent } from '../service.ts'
import { waitFor } from '../waitFor.ts'
import { pay, redeem, type SignedPayment, type TestTill } from './till.ts'

export type WaitingPayment = SignedPayment & { id: string }

/**
 * Describes a payment to make: its payer, and the fields in which its authorization differs from the default
 * authorization.
 */
export type Order = { account?: PrivateKeyAccount; changes?: Partial<Authorization> }

/** Sets the number of concurrent redeem requests (which take a payment). */
const IN_FLIGHT = 40

/**
 * Redeems each payment while no worker runs, so all payments stay pending. Each redeem request gets its response only
 * after SETTLEMENT_WAIT_MS.
 */
export async function claimAll(
  seller: Agent,
  wanted: readonly Order[] | number,
): Promise<WaitingPayment[]> {
  const orders = typeof wanted === 'number' ? Array.from({ length: wanted }, () => ({})) : wanted
  const claimed: WaitingPayment[] = []
  for (let at = 0; at < orders.length; at += IN_FLIGHT) {
    claimed.push(
      ...(await Promise.all(
        orders.slice(at, at + IN_FLIGHT).map((order) => claimOne(seller, order)),
      )),
    )
  }
  return claimed
}

async function claimOne(seller: Agent, { account, changes = {} }: Order): Promise<WaitingPayment> {
  const payment = await pay(changes, account === undefined ? {} : { account })
  // A service on a busy machine may respond with 503, and the test then redeems the same payment header again.
  const { body } = await waitFor('the claim', async () => {
    const answer = await redeem(seller, payment.header)
    return answer.status === 503 ? null : answer
  })
  if (body.reason !== 'settlement_pending') throw new Error(JSON.stringify(body))
  return { ...payment, id: body.paymentId as string }
}

/** Waits until a payment has the given status. @returns the record of the payment */
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

/** Waits until the transaction that settles a payment is sent. */
export const inPool = (till: TestTill, id: string): Promise<`0x${string}`> =>
  waitFor('the transaction to be in the pool', async () => {
    const { rows } = await till.service.database.pool.query(
      `select t.hash from transaction_payments m join chain_transactions t on t.hash = m.hash
       where m.payment_id = $1 and t.state = 'open' and t.sent_at is not null and t.send_error is null`,
      [id],
    )
    return rows[0]?.hash ?? null
  })

/** Reads the hashes of the transactions of payments, with the number of payments in each transaction. */
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
