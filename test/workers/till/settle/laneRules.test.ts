/**
 * Tests when the settlement lanes (queues of payments) start to settle a payment, end the attempt, or postpone the
 * payment. The test delays the answers of the chain node.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { toHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import { failPayment } from '../../../../sql/till/settle/settlements.ts'
import type { ChainView, KnownChain } from '../../../../workers/till/chain/chainView.ts'
import { type RpcCall, RpcTrouble } from '../../../../workers/till/chain/rpc.ts'
import { GROUP_MAX } from '../../../../workers/till/settle/paymentGroup.ts'
import { createSettlementLanes } from '../../../../workers/till/settle/settlementLanes.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { type HandChain, startHandChain } from '../../../support/till/handChain.ts'
import {
  dropJobs,
  newPayment,
  newProject,
  newTransaction,
  queuedPayments,
  row,
} from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

const gasWallet = privateKeyToAccount(DEVNET_ACCOUNTS.gasWallet.privateKey)
let database: TestDatabase
let pool: TestDatabase['pool']
let hand: HandChain
let projectId: string
/** Returns the answer of the chain node to a request. */
let answer: (calls: readonly RpcCall[]) => Promise<never>
/** Holds the requests that the chain node got, as text. */
const requests: string[] = []
let chain: KnownChain
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  hand = startHandChain(pool)
  projectId = await newProject(pool)
})
beforeEach(async () => {
  await pool.query('truncate payments, chain_transactions, gas_wallets cascade')
  await dropJobs(pool)
  answer = away
  requests.length = 0
  const batch = async (calls: readonly RpcCall[]) => {
    requests.push(JSON.stringify(calls).toLowerCase())
    return await answer(calls)
  }
  chain = { ...hand.chain, rpc: { batch, call: () => batch([]) }, accounts: [gasWallet] }
})
afterAll(async () => {
  hand[Symbol.dispose]()
  await database[Symbol.asyncDispose]()
})

const away = () => Promise.reject(new RpcTrouble('the node is away'))
/** Makes the chain node delay its answers until the test calls the returned function. */
function hold(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>()
  answer = () => promise.then(away)
  return resolve
}
let payers = 0
/** Makes a payment of a payer who has no other payment. */
const payment = () =>
  newPayment(pool, { projectId, payer: toHex(0xabc000 + ++payers, { size: 20 }) })
const namesPayer = async (id: string) => {
  const { payer } = await row(pool, 'payments', id)
  return (text: string) => text.includes(payer.slice(2))
}
/** Waits until the chain node has got a request about a payment. */
const isAsked = async (id: string) => {
  const names = await namesPayer(id)
  return waitFor('a request about the payment', () => requests.some(names))
}
const set = (id: string, columns: string) =>
  pool.query(`update payments set ${columns} where id = $1`, [id])
const troubleOf = async (id: string) => (await row(pool, 'payments', id)).trouble
/**
 * Sets the milliseconds after which the first payment group counts as late and a second group may begin. The value is
 * the same in settlementLanes.ts.
 */
const LATE_MS = 250
const AWAY = 'the node is away'

describe('a settlement job makes one attempt to settle its payment', () => {
  test('a settlement job ends after one attempt to settle its payment', async () => {
    const lanes = createSettlementLanes(chain)
    const ids = [await payment(), await payment()]
    await Promise.all([...ids, ids[0]!].map((id) => lanes.settle(id)))
    for (const id of ids) expect(await troubleOf(id)).toBe(AWAY)
    await lanes.drain()
  })

  test('a settlement job also settles waiting payments that have no job', async () => {
    const lanes = createSettlementLanes(chain)
    const [id, other] = [await payment(), await payment()]
    await lanes.settle(id)
    await lanes.drain()
    expect(await troubleOf(other)).toBe(AWAY)
  })

  test('a settlement job sends no request to the chain node if its payment has ended, was already sent, or is unknown', async () => {
    const lanes = createSettlementLanes(chain)
    const [failed, sent] = [await payment(), await payment()]
    await failPayment(pool, {
      ...{ paymentId: failed, stage: 'verify', reason: 'insufficient_funds', detail: null },
    })
    const { hash } = await newTransaction(pool, sent)
    await pool.query('update chain_transactions set sent_at = now() where hash = $1', [hash])
    for (const id of [failed, sent, 'pay_unknown']) await lanes.settle(id)
    await lanes.drain()
    expect(await troubleOf(sent)).toBeNull()
    expect(await queuedPayments(pool)).toEqual([])
  })

  test('the settlement job of a postponed payment is queued again for the end of the postponement', async () => {
    const lanes = createSettlementLanes(chain)
    const id = await payment()
    await set(id, `settle_after = clock_timestamp() + interval '1 hour'`)
    await lanes.settle(id)
    expect(await troubleOf(id)).toBeNull()
    const { rows } = await pool.query(
      `select run_at > now() + interval '59 minutes' as late from graphile_worker.jobs where key = $1`,
      [`settle_payment:${id}`],
    )
    expect(rows).toEqual([{ late: true }])
  })

  test('while another process has locked a payment, its settlement job waits', async () => {
    const lanes = createSettlementLanes(chain)
    const id = await payment()
    const client = await pool.connect()
    try {
      await client.query('begin')
      await client.query('select from payments where id = $1 for update', [id])
      let hasEnded = false
      const job = lanes.settle(id).then(() => {
        hasEnded = true
      })
      await waitFor('a look at the locked row', async () => {
        const { rows } = await pool.query(
          `select from pg_stat_activity where datname = current_database() and query like '%is_unsent%'`,
        )
        return rows.length > 0
      })
      expect(hasEnded).toBe(false)
      await client.query('commit')
      await job
    } finally {
      client.release()
    }
    expect(await troubleOf(id)).toBe(AWAY)
  })

  test('if two settlement jobs have the same payment, the second job waits for the attempt of the first job before it requests another attempt', async () => {
    const release = hold()
    const lanes = createSettlementLanes(chain)
    const id = await payment()
    // After five attempts in vain, the next pause lasts for five seconds. The second job therefore ends in this pause.
    await set(id, 'trouble_count = 5')
    const first = lanes.settle(id)
    await isAsked(id)
    const second = lanes.settle(id)
    release()
    await Promise.all([first, second])
    await lanes.drain()
    expect((await row(pool, 'payments', id)).trouble_count).toBe(6)
  })

  test('a settlement job postpones its payment while the state of the chain is unknown', async () => {
    const unknown: ChainView = { ...chain, network: null, head: null }
    const lanes = createSettlementLanes(unknown)
    const id = await payment()
    await lanes.settle(id)
    expect(await troubleOf(id)).toBe('the chain is not known yet')
    await lanes.drain()
  })
})

describe('if the service itself fails during a settlement, the payment can be tried again', () => {
  test('if a bug stops the settlement of one payment, the settlement of the other payments is still tried', async () => {
    const lanes = createSettlementLanes(chain)
    const [broken, fine] = [await payment(), await payment()]
    await set(broken, `goes_alone = true`)
    await set(fine, `goes_alone = true`)
    const names = await namesPayer(broken)
    const bug = new TypeError('a bug')
    answer = (calls) => (names(JSON.stringify(calls).toLowerCase()) ? Promise.reject(bug) : away())
    const ends = await Promise.allSettled([lanes.settle(broken), lanes.settle(fine)])
    expect(ends).toEqual([
      { status: 'rejected', reason: bug },
      { status: 'fulfilled', value: undefined },
    ])
    expect(await troubleOf(fine)).toBe(AWAY)
    await lanes.drain()
  })

  test('after a settlement job has failed, the same process can try to settle the payment again at once', async () => {
    const lanes = createSettlementLanes(chain)
    const id = await payment()
    answer = () => Promise.reject(new TypeError('a bug'))
    await expect(lanes.settle(id)).rejects.toThrow('a bug')
    answer = away
    await lanes.settle(id)
    expect(await troubleOf(id)).toBe(AWAY)
  })

  test('if the query for the waiting payments fails, all waiting settlement jobs fail', async () => {
    const broken = { ...chain, pool: { query: () => Promise.reject(new Error('no database')) } }
    const lanes = createSettlementLanes(broken as never)
    const ends = await Promise.allSettled([lanes.settle('pay_1'), lanes.settle('pay_2')])
    expect(ends.map((end) => end.status === 'rejected' && end.reason.message)).toEqual([
      ...['no database', 'no database'],
    ])
    await lanes.drain()
  })
})

describe('the settlement lanes (queues of payments) limit how many payment transactions are in progress at once', () => {
  test('a second payment group begins if the first group takes longer than 250 ms, and a third group begins only when a group ends', async () => {
    const release = hold()
    const lanes = createSettlementLanes(chain)
    const ids = [await payment()]
    const jobs = [lanes.settle(ids[0]!)]
    await isAsked(ids[0]!)
    ids.push(await payment())
    jobs.push(lanes.settle(ids[1]!))
    await isAsked(ids[1]!)
    ids.push(await payment())
    jobs.push(lanes.settle(ids[2]!))
    let isDrained = false
    const drained = lanes.drain().then(() => {
      isDrained = true
    })
    expect(isDrained).toBe(false)
    expect(requests.some(await namesPayer(ids[2]!))).toBe(false)
    release()
    await Promise.all([...jobs, drained])
    for (const id of ids) expect(await troubleOf(id)).toBe(AWAY)
  })

  /** Makes copies of a payment that were claimed (stored) an hour earlier. */
  const copy = (id: string, count: number, goesAlone: boolean) =>
    pool.query(
      `insert into payments (id, project_id, resource_url, network, chain_id, asset, payer, recipient, amount_atomic,
         valid_after, valid_before, authorization_nonce, signature, goes_alone, created_at)
       select id || n, project_id, resource_url, network, chain_id, asset, payer, recipient, amount_atomic, valid_after,
         valid_before, '0x' || lpad(to_hex(1000000 + n), 64, '0'), signature, $3, created_at - interval '1 hour'
       from payments, generate_series(1, $2::int) n where id = $1`,
      [id, count, goesAlone],
    )
  const putOffAll = () => pool.query(`update payments set settle_after = now() + interval '1 hour'`)

  test('a backlog of 20,100 payments that need separate transactions does not hide a payment that may share one', async () => {
    const [copied, late] = [await payment(), await payment()]
    await copy(copied, 20_100, true)
    await set(copied, 'goes_alone = true')
    const release = hold()
    const lanes = createSettlementLanes(chain)
    const job = lanes.settle(late)
    await isAsked(late)
    await putOffAll()
    release()
    await Promise.all([job, lanes.drain()])
    expect(await troubleOf(late)).toBe(AWAY)
  }, 60_000)

  test('in a backlog of 20,000 payments, the newest payment goes into the same payment group as the oldest payment', async () => {
    const [copied, late] = [await payment(), await payment()]
    await copy(copied, 20_000, false)
    const release = hold()
    const lanes = createSettlementLanes(chain)
    const job = lanes.settle(late)
    await isAsked(late)
    const [namesLate, namesCopied] = [await namesPayer(late), await namesPayer(`${copied}1`)]
    expect(requests.filter((text) => namesLate(text) && namesCopied(text))).toHaveLength(1)
    const group = requests.find(namesLate)!
    expect(group.split('eth_getcode').length - 2).toBe(GROUP_MAX)
    await putOffAll()
    release()
    await Promise.all([job, lanes.drain()])
  }, 60_000)

  test('a second payment group begins even if the first group exceeds 250 ms only while the waiting payments are being read', async () => {
    const release = hold()
    let reads = 0
    let begunMs = Number.POSITIVE_INFINITY
    const isLate = () => performance.now() > begunMs + LATE_MS
    const slow = Object.create(pool, {
      connect: { value: () => pool.connect() },
      query: {
        async value(statement: { name?: string }, ...values: unknown[]) {
          const result = await pool.query(statement as never, ...(values as []))
          if (statement.name === 'take-waiting' && ++reads === 2) {
            await waitFor('the first group to be late', isLate)
          }
          return result
        },
      },
    })
    const lanes = createSettlementLanes({ ...chain, pool: slow })
    const first = await payment()
    const jobs = [lanes.settle(first)]
    await isAsked(first)
    begunMs = performance.now()
    const second = await payment()
    jobs.push(lanes.settle(second))
    await isAsked(second)
    release()
    await Promise.all(jobs)
    await lanes.drain()
  })

  test('sixteen payments with separate transactions run at the same time, and payments above this number are postponed', async () => {
    const release = hold()
    const lanes = createSettlementLanes(chain)
    const ids: string[] = []
    for (let n = 0; n < 18; n++) ids.push(await payment())
    await pool.query('update payments set goes_alone = true')
    const first = ids.slice(0, 16).map((id) => lanes.settle(id))
    await isAsked(ids[0]!)
    for (const id of ids.slice(16)) await lanes.settle(id)
    expect(await queuedPayments(pool)).toEqual(ids.slice(16))
    release()
    await Promise.all(first)
    await lanes.drain()
  })
})
