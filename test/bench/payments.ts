import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Hex, keccak256 } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { parseUsdc } from '../../shared/till/usdc.ts'
import { buildChallenge } from '../../shared/till/x402.ts'
import { updateProject } from '../../sql/account/projects.ts'
import { type Devnet, startDevnet } from '../../workers/devnet/devnet.ts'
import { createRpc, type Rpc } from '../../workers/till/rpc.ts'
import { transferCall } from '../../workers/till/transfer.ts'
import { freePort, printed, startProcess } from '../support/process.ts'
import { redeemMany } from '../support/redeemers.ts'
import {
  PRICE,
  pay,
  payTo,
  RESOURCE,
  registerEndpoint,
  SEPOLIA,
  type SignedPayment,
} from '../support/till.ts'
import { waitFor } from '../support/waitFor.ts'
import { compare, type Row } from './measure.ts'
import type { Setting } from './setting.ts'

const MANY = 500
const SOME = 200
const IN_FLIGHT = 50
const BLOCK_TIME_S = 2

/** Another wallet of the service's mnemonic, with nonces of its own. */
const bareWallet = mnemonicToAccount(
  'test test test test test test test test test test test junk',
  {
    addressIndex: 3,
  },
)

/** Account #4 of that mnemonic, for the reference implementation. */
const PEER_KEY = '0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a'

/** Redeems through one gas wallet against the bare chain: nonces counted in memory, nothing checked or stored. */
export async function paymentRows(setting: Setting): Promise<Row[]> {
  const automine = await withTill(setting, {}, async (bench) => [
    await throughput(bench, 'settlements, automine'),
    ...(await latencies(bench)),
    await besideX402(bench, 'settlements, automine'),
  ])
  const blocks = await withTill(setting, { blockTimeS: BLOCK_TIME_S }, async (bench) => [
    await throughput(bench, `settlements, ${BLOCK_TIME_S} s blocks`),
    await besideX402(bench, `settlements, ${BLOCK_TIME_S} s blocks`),
  ])
  return [...automine, ...blocks]
}

type Bench = { url: string; key: string; rpc: Rpc; rpcUrl: string }

const bare = 'the same transfers sent raw, one gas wallet, nonces in memory'

function throughput(bench: Bench, name: string): Promise<Row> {
  const measure = (work: (payments: SignedPayment[]) => Promise<number[]>) => async () => {
    const payments = await makePayments(MANY)
    const startedMs = performance.now()
    await work(payments)
    return (MANY * 1000) / (performance.now() - startedMs)
  }
  return compare({
    name,
    unit: 'payments/s',
    detail: `${bare}; ${MANY} in flight`,
    ours: measure((payments) => redeemAll(bench, payments, MANY)),
    baseline: measure((payments) => sendAll(bench.rpc, payments, MANY)),
  })
}

/** The reference implementation's settle on the same chain. A lost transaction costs it the payment. */
async function besideX402(bench: Bench, name: string): Promise<Row> {
  let offered = 0
  let settled = 0
  const row = await compare({
    name,
    unit: 'payments/s',
    detail: '',
    ours: async () => {
      const payments = await makePayments(MANY)
      const startedMs = performance.now()
      await redeemAll(bench, payments, MANY)
      return (MANY * 1000) / (performance.now() - startedMs)
    },
    baseline: async () => {
      const result = await settleByX402(bench.rpcUrl, await makePayments(MANY))
      offered += MANY
      settled += result.settled
      return (result.settled * 1000) / result.ms
    },
  })
  const share = `${settled} of ${offered} settled`
  return {
    ...row,
    detail: `npm x402 settle under viem's nonceManager, one gas wallet, ${MANY} in flight; ${share}`,
  }
}

/** Runs it in a separate Node process, as its users do; only the time inside counts. */
async function settleByX402(
  rpcUrl: string,
  payments: SignedPayment[],
): Promise<{ settled: number; ms: number }> {
  const orders = payments.map(({ header }) => ({
    paymentPayload: JSON.parse(Buffer.from(header, 'base64').toString()),
    paymentRequirements: buildChallenge({
      network: 'base-sepolia',
      amountAtomic: parseUsdc(PRICE),
      resource: RESOURCE,
      payTo,
    }).accepts[0],
  }))
  const order = { rpcUrl, privateKey: PEER_KEY, inFlight: MANY, orders }
  const child = Bun.spawn(['node', 'test/clients/settle.mjs'], {
    stdin: new TextEncoder().encode(JSON.stringify(order)),
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return JSON.parse(await new Response(child.stdout).text())
}

/** Both quantiles of the same rounds. */
async function latencies(bench: Bench): Promise<Row[]> {
  const rounds: Record<'ours' | 'baseline', number[][]> = { ours: [], baseline: [] }
  const quantile = (times: number[], share: number) => times[Math.floor(times.length * share)]!
  const measure =
    (side: 'ours' | 'baseline', work: (payments: SignedPayment[]) => Promise<number[]>) =>
    async () => {
      const times = (await work(await makePayments(SOME))).toSorted((a, b) => a - b)
      rounds[side].push(times)
      return quantile(times, 0.5)
    }
  const replay = (side: 'ours' | 'baseline') => async () => quantile(rounds[side].shift()!, 0.99)
  const shown = { unit: 'ms', detail: `${bare}; ${IN_FLIGHT} in flight` }
  const median = await compare({
    ...shown,
    name: 'redeem latency p50',
    ours: measure('ours', (payments) => redeemAll(bench, payments, IN_FLIGHT)),
    baseline: measure('baseline', (payments) => sendAll(bench.rpc, payments, IN_FLIGHT)),
  })
  const tail = await compare({
    ...shown,
    name: 'redeem latency p99',
    ours: replay('ours'),
    baseline: replay('baseline'),
  })
  return [median, tail]
}

const makePayments = (count: number): Promise<SignedPayment[]> =>
  Promise.all(
    Array.from({ length: count }, () =>
      pay({ validBefore: BigInt(Math.floor(Date.now() / 1000)) + 600n }),
    ),
  )

/** @returns milliseconds of each. */
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

/** The minimum of a settlement: sign, send, wait for the receipt. @returns milliseconds of each. */
async function sendAll(rpc: Rpc, payments: SignedPayment[], inFlight: number): Promise<number[]> {
  const first = Number(await rpc.call('eth_getTransactionCount', [bareWallet.address, 'latest']))
  const times: number[] = []
  let next = 0
  // In nonce order: anvil leaves some transactions with early nonces in the pool.
  let sent: Promise<unknown> = Promise.resolve()
  const lane = async () => {
    while (next < payments.length) {
      const n = next++
      const startedMs = performance.now()
      const raw = sign(payments[n]!, first + n)
      const mine = sent.then(async () => rpc.call('eth_sendRawTransaction', [await raw]))
      sent = mine
      await mine
      const hash = keccak256(await raw)
      while ((await rpc.call('eth_getTransactionReceipt', [hash])) === null) await Bun.sleep(10)
      times.push(performance.now() - startedMs)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
  return times
}

function sign(payment: SignedPayment, nonce: number): Promise<Hex> {
  const { authorization, signature } = payment
  const transfer = {
    asset: SEPOLIA.usdcAddress,
    payer: authorization.from,
    recipient: authorization.to,
    amountAtomic: authorization.value,
    validAfter: authorization.validAfter,
    validBefore: authorization.validBefore,
    nonce: authorization.nonce,
    signature,
    deployment: null,
  }
  return bareWallet.signTransaction({
    type: 'eip1559',
    chainId: SEPOLIA.chainId,
    nonce,
    ...transferCall(transfer),
    maxFeePerGas: 10n ** 10n,
    maxPriorityFeePerGas: 10n ** 9n,
  })
}

/** Runs `work` with a chain, an API and a worker, each in a separate process. */
async function withTill(
  setting: Setting,
  chain: { blockTimeS?: number },
  work: (bench: Bench) => Promise<Row[]>,
): Promise<Row[]> {
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
    return await work(bench)
  } finally {
    await devnet.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Each chain of this bench is new but has the same chain id; its gas wallet has used no nonce. */
async function forgetChain({ pool, project }: Setting): Promise<void> {
  await updateProject(pool, project.id, { payTo, paymentsEnabled: true })
  await pool.query('truncate payments, chain_transactions, gas_wallets, chain_status cascade')
  const { rowCount } = await pool.query('select from seller_endpoints')
  if (rowCount === 0) await registerEndpoint(pool, { projectId: project.id, resource: RESOURCE })
}
