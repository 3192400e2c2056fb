import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Address } from 'viem'
import { parseConfig } from '../../shared/config/config.ts'
import { DEVNET_ACCOUNTS } from '../../shared/till/devnetAccounts.ts'
import { createKeyringSource, masterKeys } from '../../sql/keyring/keyring.ts'
import { giveMandate } from '../../sql/purse/mandates.ts'
import { findPurse, openPurse } from '../../sql/purse/purses.ts'
import { devnetClient } from '../../workers/devnet/contracts.ts'
import { startDevnet } from '../../workers/devnet/devnet.ts'
import { changeProject } from '../support/changeProject.ts'
import { freePort, printed, startProcess } from '../support/process/process.ts'
import { fund, payTo } from '../support/till/till.ts'
import { waitFor } from '../support/waitFor.ts'
import { compare, type Row } from './measure.ts'
import type { Setting } from './setting.ts'

const MANY = 200
const IN_FLIGHT = 50
const FEW = 20
const BLOCK_TIME_S = 2
const FUNDS_ATOMIC = 1_000_000_000n

type Bought = { times: number[]; ms: number }
type Shop = { url: string; api: string; key: string }

const BESIDE = `@x402/fetch with a raw key, the same seller, ${BLOCK_TIME_S} s blocks`
const median = (times: number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1]!

/** Buys with one purse beside the reference's client with a raw key, from one seller that settles through this service. */
export async function* purseRows(setting: Setting): AsyncGenerator<Row> {
  const directory = mkdtempSync(join(tmpdir(), 'purser-bench-purse-'))
  const log = { info() {}, warn() {} }
  const stateFile = join(directory, 'state')
  const devnet = await startDevnet({ port: 0, stateFile, log, blockTimeS: BLOCK_TIME_S })
  try {
    const port = await freePort()
    const env = {
      ...setting.env,
      PORT: String(port),
      RPC_URL: devnet.rpcUrl,
      ALLOW_PRIVATE_NETWORKS: 'true',
      SETTLEMENT_WAIT_MS: '120000',
      LOG_LEVEL: 'info',
    }
    await changeProject(setting.pool, setting.project.id, { payTo, paymentsEnabled: true })
    const parts = [
      startProcess('api/main.ts', env),
      startProcess('workers/main.ts', env, ['--pool', 'payments']),
      startProcess('workers/main.ts', env, ['--pool', 'purse']),
    ]
    await using stack = new AsyncDisposableStack()
    for (const part of parts) stack.use(part)
    await Promise.all(parts.map((part) => printed(part, /"msg":"ready"/)))
    const api = `http://127.0.0.1:${port}`
    await waitFor('the till', async () => (await fetch(`${api}/readyz`)).ok)
    const seller = startProcess('examples/sellerHono.ts', { KEY: setting.key, API: api, PORT: '0' })
    stack.use(seller)
    const [, url = ''] = await printed(seller, /selling at (\S+)/)
    await openFundedPurse(setting, devnet.rpcUrl, new URL(url).host)
    yield* compareBuyers({ url, api, key: setting.key })
  } finally {
    await devnet.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

async function openFundedPurse(setting: Setting, rpcUrl: string, host: string): Promise<void> {
  const { pool, project } = setting
  const actor = { projectId: project.id, keyPrefix: 'bench', requestId: 'bench' }
  const keyring = await createKeyringSource(masterKeys(parseConfig(setting.env)))(pool)
  await openPurse(pool, keyring, actor)
  const purse = (await findPurse(pool, project.id))!
  await fund(devnetClient(rpcUrl), purse.address as Address, FUNDS_ATOMIC)
  await waitFor('the balance', async () => {
    const found = await findPurse(pool, project.id)
    return found?.balanceAtomic === FUNDS_ATOMIC
  })
  await giveMandate(pool, actor, {
    name: 'Bench',
    task: null,
    network: 'base-sepolia',
    hosts: [host],
    resources: [],
    payees: null,
    perPaymentAtomic: 1_000_000n,
    limits: { hour: null, day: null, month: null, total: FUNDS_ATOMIC },
    paymentsPerMinute: 10_000,
    askAboveAtomic: null,
    risePercent: 20,
    validFrom: null,
    validUntil: null,
  })
}

async function* compareBuyers(shop: Shop): AsyncGenerator<Row> {
  yield await compare({
    name: `purchases, ${IN_FLIGHT} in flight`,
    unit: 'purchases/s',
    detail: BESIDE,
    ours: async () => rateOf(await buyByPurse(shop, MANY, IN_FLIGHT)),
    baseline: async () => rateOf(await buyRaw(shop, MANY, IN_FLIGHT)),
  })
  yield await compare({
    name: 'purchase p50, one in flight',
    unit: 'ms',
    detail: BESIDE,
    ours: async () => median((await buyByPurse(shop, FEW, 1)).times),
    baseline: async () => median((await buyRaw(shop, FEW, 1)).times),
  })
}

const rateOf = ({ times, ms }: Bought): number => (times.length * 1000) / ms

let keys = 0

async function buyByPurse(
  { url, api, key }: Shop,
  count: number,
  inFlight: number,
): Promise<Bought> {
  const times: number[] = []
  let next = 0
  const startedMs = performance.now()
  const lane = async () => {
    while (next++ < count) {
      const beganMs = performance.now()
      const response = await fetch(`${api}/v0/purse/pay?timeout=40`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'idempotency-key': `bench-${++keys}`,
        },
        body: JSON.stringify({ url, maxAmount: '0.01' }),
      })
      const bought = (await response.json()) as { state: string }
      if (bought.state !== 'answered') throw new Error(JSON.stringify(bought))
      times.push(performance.now() - beganMs)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
  return { times, ms: performance.now() - startedMs }
}

/** In a Node process of its own, as its users run it. */
async function buyRaw({ url }: Shop, count: number, inFlight: number): Promise<Bought> {
  const { privateKey } = DEVNET_ACCOUNTS.payer
  const child = Bun.spawn(['node', 'test/clients/purchases.mjs'], {
    stdin: new TextEncoder().encode(JSON.stringify({ url, privateKey, count, inFlight })),
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return JSON.parse(await new Response(child.stdout).text())
}
