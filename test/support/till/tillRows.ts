/** Makes payment rows in a test database with the functions of the service. */
import { type Hex, pad, toHex } from 'viem'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import { createProject } from '../../../sql/account/projects/projects.ts'
import type { Pool } from '../../../sql/db.ts'
import { claimPayments, type NewClaim } from '../../../sql/till/settle/claims.ts'
import {
  type SignedTransaction,
  storeSigned,
  syncWallet,
  type WalletId,
} from '../../../sql/till/settle/gasWallets.ts'
import { recordSettlements } from '../../../sql/till/settle/settlements.ts'
import { waitFor } from '../waitFor.ts'

const { chainId, usdcAddress } = USDC_NETWORKS['base-sepolia']
/** Holds the id of a chain that is not the chain of {@link newClaim}. */
export const OTHER_CHAIN_ID = 8453
export const WALLET: WalletId = { chainId, address: DEVNET_ACCOUNTS.gasWallet.address }
export const BLOCK = { blockNumber: 7n, blockHash: pad('0xb7') } as const

let made = 0
const newId = (prefix: string) => `${prefix}_${(++made).toString(16).padStart(24, '0')}`
/** Makes a hash or nonce that sorts after all hashes that the test made before. */
export const newHash = (): Hex => pad(toHex(++made))

export async function newProject(pool: Pool): Promise<string> {
  const { project } = await createProject(pool, {
    name: 'Seller',
    purpose: 'SELLER',
    emailAddress: `seller${++made}@mail.test`,
    scopes: ['payments:accept'],
  })
  return project.id
}

export const newClaim = (projectId: string, changes: Partial<NewClaim> = {}): NewClaim => ({
  id: newId('pay'),
  projectId,
  endpointId: null,
  matchKey: null,
  resourceUrl: 'https://api.example.com/report',
  description: null,
  network: 'base-sepolia',
  chainId,
  asset: usdcAddress,
  payer: DEVNET_ACCOUNTS.payer.address,
  recipient: DEVNET_ACCOUNTS.payTo.address,
  amountAtomic: 10_000n,
  validAfter: 0n,
  validBefore: 4_000_000_000n,
  nonce: newHash(),
  signature: `0x${'11'.repeat(65)}`,
  deployment: null,
  x402Version: 1,
  resourceSource: 'seller',
  paymentIdentifier: null,
  ...changes,
})

/**
 * Claims a payment (stores it) and deletes the job that the claim queues, so that only the function under test queues
 * jobs.
 */
export async function newPayment(
  pool: Pool,
  { projectId, ...changes }: Partial<NewClaim> = {},
): Promise<string> {
  const claim = newClaim(projectId ?? (await newProject(pool)), changes)
  const [isMade] = await claimPayments(pool, [claim])
  if (!isMade) throw new Error('not claimed')
  await dropJobs(pool)
  return claim.id
}

export const dropJobs = (pool: Pool) =>
  pool.query(`select graphile_worker.complete_jobs(array(select id from graphile_worker.jobs))`)

/** Makes all jobs fail for good, as if each had used up its last attempt. */
export const failJobs = (pool: Pool) =>
  pool.query('update graphile_worker._private_jobs set attempts = max_attempts')

/** Lists the ids of the payments that have a settlement job, sorted by id. */
export async function queuedPayments(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ key: string }>(
    `select key from graphile_worker.jobs where key like 'settle_payment:%' order by key`,
  )
  return rows.map(({ key }) => key.slice('settle_payment:'.length))
}

export const signedFor = (
  payments: string | readonly string[] | null,
  nonce: bigint,
): SignedTransaction => ({
  hash: newHash(),
  nonce,
  paymentIds: payments === null ? [] : [payments].flat(),
  raw: '0x02',
  maxFeeWei: 100n,
  tipWei: 1n,
  gasLimit: 100_000n,
  payerCode: null,
})

/** Signs and stores a transaction for a payment with the next nonce of the gas wallet. */
export async function newTransaction(
  pool: Pool,
  paymentId: string,
  wallet = WALLET,
): Promise<SignedTransaction> {
  await syncWallet(pool, wallet, 0n)
  const [signed] = await storeSigned(pool, wallet, [[paymentId]], new Map(), async (ids, nonce) =>
    signedFor(ids, nonce),
  )
  if (signed === undefined) throw new Error('no transaction was stored')
  return signed
}

/** Records the settlement of a payment by a transaction, as the watcher of the chain does. */
export const settle = (
  pool: Pool,
  paymentId: string,
  txHash: Hex,
  { receiptText = `{"of":"${txHash}"}`, settledAt = new Date() } = {},
): Promise<void> =>
  recordSettlements(pool, {
    settlements: [{ paymentId, txHash, logIndex: 1, receiptText, settledAt, ...BLOCK }],
    mined: [{ hash: txHash, succeeded: true, gasUsed: 86_000n, feeWei: 7n, ...BLOCK }],
  })

/** Makes a payment that a transaction of the service has settled. */
export async function newSettled(
  pool: Pool,
  changes: Partial<NewClaim> = {},
): Promise<{ id: string; txHash: Hex }> {
  const id = await newPayment(pool, changes)
  const { hash } = await newTransaction(pool, id)
  await settle(pool, id, hash)
  return { id, txHash: hash }
}

/** Reads one row of a database table. */
export async function row(pool: Pool, table: string, id: string): Promise<any> {
  const key = table === 'chain_transactions' ? 'hash' : 'id'
  const { rows } = await pool.query(`select * from ${table} where ${key} = $1`, [id])
  return rows[0]
}

/** Waits until exactly `count` SQL statements wait for a lock. */
export const blocked = (pool: Pool, count: number): Promise<true> =>
  waitFor(`${count} statements to wait for a lock`, async () => {
    const { rows } = await pool.query(
      `select count(*)::int as n from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows[0].n === count
  })

/**
 * Runs the statement `hold` in a database transaction, which stays open until every promise of `meanwhile` waits for a
 * lock.
 */
export async function whileHeld<Result>(
  pool: Pool,
  hold: string,
  values: unknown[],
  meanwhile: () => Promise<Result>[],
): Promise<Result[]> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query(hold, values)
    const waiting = meanwhile()
    const results = Promise.all(waiting)
    // The `await` at the end of the function throws the error of a rejected promise. An earlier rejection would count
    // as unhandled, so this empty handler is needed.
    results.catch(() => {})
    await blocked(pool, waiting.length)
    await client.query('commit')
    return await results
  } finally {
    client.release()
  }
}

/**
 * Returns two lists of rows in opposite orders, so that two statements that lock rows in these orders would deadlock.
 * The first two rows are the rows that the caller has locked.
 */
export function crossing<Row>([held1, held2, x, y]: readonly Row[]): [Row[], Row[]] {
  return [
    [x!, held1!, y!],
    [y!, held2!, x!],
  ]
}
