import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { numberToHex, parseGwei } from 'viem'
import { type Devnet, startDevnet } from '../../../workers/devnet/devnet.ts'
import { createRpc, type Rpc } from '../../../workers/till/chain/rpc.ts'
import { changeProject } from '../../support/changeProject.ts'
import { freePort, printed, startProcess } from '../../support/process/process.ts'
import { redeemMany } from '../../support/till/redeemers.ts'
import {
  PRICE,
  pay,
  payTo,
  RESOURCE,
  registerEndpoint,
  type SignedPayment,
} from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import { compare, type Row, rounds } from '../measure.ts'
import type { Setting } from '../setting.ts'
import { sendAll, sendOne, settleByX402 } from './paymentPeers.ts'

const MANY = 500
/**
 * Sets the number of payments in a benchmark round on a chain with blocks every 2 s. A block has room for 350 raw
 * transfers or 670 payments of this service. With fewer payments, a round would mainly measure the rounding to whole
 * blocks.
 */
const MANY_OF_BLOCKS = 3_000
const IN_FLIGHT_OF_BLOCKS = 1_000
const SOME = 200
const IN_FLIGHT = 50
const FEW = 40
const BLOCK_TIME_S = 2
const BASE_FEE = numberToHex(parseGwei('1'))

/**
 * Sets the number of benchmark rounds with the x402 reference implementation. This number is small, because a round
 * with a lost transaction lasts until its deadline.
 */
const REFERENCE_ROUNDS = 3

/**
 * Compares redeem calls (which take a payment) through one gas wallet with sending the transactions directly to the
 * chain. The baseline counts nonces in memory, checks no payment and stores nothing. Each row is yielded as soon as it
 * is measured.
 */
export async function* paymentRows(setting: Setting): AsyncGenerator<Row> {
  yield* withTill(setting, {}, async function* (bench) {
    yield await throughput(bench, 'settlements, automine', { many: MANY, inFlight: MANY })
    yield await gasOfPayments(bench, setting)
    // Autovacuum analyzes new tables only within a minute. Without table statistics, a redeem call (which takes a
    // payment) would read whole tables, so the benchmark analyzes the tables itself.
    await setting.pool.query('vacuum analyze')
    yield* latencies(bench, { payments: SOME, inFlight: IN_FLIGHT })
    yield* latencies(bench, { payments: FEW, inFlight: 1 })
    yield await besideX402(bench, 'settlements, automine', { many: MANY, inFlight: MANY })
  })
  yield* withTill(setting, { blockTimeS: BLOCK_TIME_S }, async function* (bench) {
    const load = { many: MANY_OF_BLOCKS, inFlight: IN_FLIGHT_OF_BLOCKS }
    yield await throughput(bench, `settlements, ${BLOCK_TIME_S} s blocks`, load)
    yield await besideX402(bench, `settlements, ${BLOCK_TIME_S} s blocks`, load)
  })
}

/** Sets the number of payments in a benchmark round, and how many of them are in progress at the same time. */
type Load = { many: number; inFlight: number }

type Bench = { url: string; key: string; rpc: Rpc; rpcUrl: string }

const bare = 'the same transfers sent raw, one gas wallet, nonces in memory'

async function throughput(bench: Bench, name: string, { many, inFlight }: Load): Promise<Row> {
  let lost = 0
  const row = await compare({
    name,
    unit: 'payments/s',
    detail: '',
    ours: () => redeemedPerSecond(bench, { many, inFlight }),
    baseline: async () => {
      const payments = await startRound(bench, many)
      const startedMs = performance.now()
      const times = await sendAll(bench.rpc, payments, inFlight)
      lost += many - times.length
      return (times.length * 1000) / (performance.now() - startedMs)
    },
  })
  return { ...row, detail: `${bare}; ${inFlight} in flight; ${lost} lost` }
}

async function redeemedPerSecond(bench: Bench, { many, inFlight }: Load): Promise<number> {
  const payments = await startRound(bench, many)
  const startedMs = performance.now()
  await redeemAll(bench, payments, inFlight)
  return (many * 1000) / (performance.now() - startedMs)
}

/** Compares the gas of this service's settlements with the gas of one transfer in its own transaction. */
async function gasOfPayments(bench: Bench, { pool }: Setting): Promise<Row> {
  const { rows } = await pool.query(
    `select (select sum(gas_used) from chain_transactions)::float8
          / (select count(*) from payments where state = 'settled') as gas,
            (select count(*) from payments where state = 'settled')::float8
          / (select count(*) from chain_transactions where state = 'mined') as size`,
  )
  const single = await sendOne(bench.rpc, (await makePayments(1))[0]!)
  return {
    name: 'gas of a settlement',
    unit: 'gas',
    ours: rows[0].gas,
    baseline: single,
    ratio: rows[0].gas / single,
    detail: `one transfer in a transaction of its own; ours ${rows[0].size.toFixed(1)} in one`,
  }
}

/**
 * Compares this service’s settlement with the function `settle` of the x402 reference implementation, on the same
 * chain. The reference implementation loses a payment if its transaction is lost.
 */
async function besideX402(bench: Bench, name: string, { many, inFlight }: Load): Promise<Row> {
  let offered = 0
  let settled = 0
  const row = await compare({
    name,
    unit: 'payments/s',
    detail: '',
    count: Math.min(rounds(), REFERENCE_ROUNDS),
    ours: () => redeemedPerSecond(bench, { many, inFlight }),
    baseline: async () => {
      const result = await settleByX402(bench, await startRound(bench, many), inFlight)
      offered += many
      settled += result.settled
      return result.settled === 0 ? 0 : (result.settled * 1000) / result.ms
    },
  })
  const share = `${offered - settled} of ${offered} lost`
  return {
    ...row,
    detail: `npm x402 settle under viem's nonceManager, a gas wallet a round, ${inFlight} in flight; ${share}`,
  }
}

/** Yields two rows of the benchmark table, one for each quantile of the same measured rounds. */
async function* latencies(
  bench: Bench,
  { payments, inFlight }: { payments: number; inFlight: number },
): AsyncGenerator<Row> {
  const taken: Record<'ours' | 'baseline', number[][]> = { ours: [], baseline: [] }
  const quantile = (times: number[], share: number) => times[Math.floor(times.length * share)]!
  const measure =
    (side: 'ours' | 'baseline', work: (payments: SignedPayment[]) => Promise<number[]>) =>
    async () => {
      const times = (await work(await makePayments(payments))).toSorted((a, b) => a - b)
      taken[side].push(times)
      return quantile(times, 0.5)
    }
  const replay = (side: 'ours' | 'baseline') => async () => quantile(taken[side].shift()!, 0.99)
  const shown = { unit: 'ms', detail: `${bare}; ${inFlight} in flight` }
  yield await compare({
    ...shown,
    name: 'redeem latency p50',
    ours: measure('ours', (list) => redeemAll(bench, list, inFlight)),
    baseline: measure('baseline', (list) => sendAll(bench.rpc, list, inFlight)),
  })
  yield await compare({
    ...shown,
    name: 'redeem latency p99',
    ours: replay('ours'),
    baseline: replay('baseline'),
  })
}

/**
 * Makes the payments of a benchmark round, and lowers the chain's base fee to the same value for each round. Each full
 * block raises the base fee by an eighth. After 40 full blocks, the base fee would exceed the fee that the baseline's
 * transactions pay.
 */
async function startRound({ rpc }: Bench, count: number): Promise<SignedPayment[]> {
  await rpc.call('anvil_setNextBlockBaseFeePerGas', [BASE_FEE])
  return await makePayments(count)
}

const makePayments = (count: number): Promise<SignedPayment[]> =>
  Promise.all(
    Array.from({ length: count }, () =>
      pay({ validBefore: BigInt(Math.floor(Date.now() / 1000)) + 600n }),
    ),
  )

/** Redeems all payments of a benchmark round. @returns the duration of each redeem call in milliseconds */
async function redeemAll(
  { url, key }: Bench,
  payments: SignedPayment[],
  inFlight: number,
): Promise<number[]> {
  const bodies = payments.map(({ header }) => ({
    paymentHeader: header,
    resource: RESOURCE,
    amount: PRICE,
  }))
  const answers = await redeemMany({ url, seller: { key } }, bodies, { inFlight })
  const failed = answers.find(({ body }) => !body.ok)
  if (failed !== undefined) throw new Error(JSON.stringify(failed.body))
  return answers.map(({ ms }) => ms)
}

/** Runs `work` with a chain, an API and a worker, each in a separate process. */
async function* withTill(
  setting: Setting,
  chain: { blockTimeS?: number },
  work: (bench: Bench) => AsyncGenerator<Row>,
): AsyncGenerator<Row> {
  const directory = mkdtempSync(join(tmpdir(), 'purser-bench-devnet-'))
  const log = { info() {}, warn() {} }
  const stateFile = join(directory, 'state')
  const devnet: Devnet = await startDevnet({ port: 0, stateFile, log, ...chain })
  try {
    await forgetChain(setting)
    const port = await freePort()
    const env = {
      ...setting.env,
      PORT: String(port),
      RPC_URL: devnet.rpcUrl,
      SETTLEMENT_WAIT_MS: '120000',
      LOG_LEVEL: 'info',
    }
    await using api = startProcess('api/main.ts', env)
    await using worker = startProcess('workers/main.ts', env, ['--pool', 'payments'])
    await Promise.all([printed(api, /"msg":"ready"/), printed(worker, /"msg":"ready"/)])
    const url = `http://127.0.0.1:${port}`
    await waitFor('the till', async () => (await fetch(`${url}/readyz`)).ok)
    const bench = {
      url,
      key: setting.key,
      rpc: createRpc({ url: devnet.rpcUrl, timeoutMs: 60_000 }),
      rpcUrl: devnet.rpcUrl,
    }
    yield* work(bench)
  } finally {
    await devnet.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

/**
 * Deletes the payments and all data about the chain from the database, because each measurement uses a new chain. All
 * chains have the same chain id, but a new chain has no used nonce of the gas wallet.
 */
async function forgetChain({ pool, project }: Setting): Promise<void> {
  await changeProject(pool, project.id, { payTo, paymentsEnabled: true })
  await pool.query('truncate payments, chain_transactions, gas_wallets, chain_status cascade')
  const { rowCount } = await pool.query('select from seller_endpoints')
  if (rowCount === 0) await registerEndpoint(pool, { projectId: project.id, resource: RESOURCE })
}
