import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Address } from 'viem'
import { parseConfig } from '../../../shared/config/config.ts'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import { createKeyringSource, masterKeys } from '../../../sql/keyring/keyring.ts'
import { giveMandate } from '../../../sql/purse/mandates.ts'
import { findPurse, openPurse } from '../../../sql/purse/purses.ts'
import { devnetClient } from '../../../workers/devnet/contracts.ts'
import { startDevnet } from '../../../workers/devnet/devnet.ts'
import { changeProject } from '../../support/changeProject.ts'
import { freePort, printed, startProcess } from '../../support/process/process.ts'
import { fund, payTo } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import { byTurns, compare, type Row, rowOf } from '../measure.ts'
import type { Setting } from '../setting.ts'

const MANY = 500
const IN_FLIGHT = 50
const FEW = 10
const BLOCK_TIME_S = 2
const FUNDS_ATOMIC = 1_000_000_000n

/**
 * Holds two lists of milliseconds. `times` is the duration of each purchase, and `ends` is the time from the start of
 * the load to the end of each purchase.
 */
type Bought = { times: number[]; ends: number[] }
type Shop = { url: string; api: string; key: string }

const BESIDE = `@x402/fetch with a raw key, the same seller, ${BLOCK_TIME_S} s blocks`
const AT_ONCE = '@x402/fetch with a raw key, the same seller, a block for each transaction at once'
const median = (times: number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1]!

/**
 * Compares purchases with a purse (a wallet) of this service with purchases by the x402 reference client, which holds a
 * raw private key. Both buyers use the same seller, which settles payments through this service.
 */
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
    const seller = startProcess('test/bench/till/timedSeller.ts', { KEY: setting.key, API: api })
    stack.use(seller)
    const [, url = ''] = await printed(seller, /selling at (\S+)/)
    await openFundedPurse(setting, devnet.rpcUrl, new URL(url).host)
    const shop = { url, api, key: setting.key }
    yield* compareBuyers(shop)
    const chain = devnetClient(devnet.rpcUrl)
    await chain.setIntervalMining({ interval: 0 })
    await chain.setAutomine(true)
    yield await compareRates(shop, AT_ONCE)
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
  yield await compareRates(shop, BESIDE)
  const [ours, baseline] = await byTurns([
    () => buyOneByOne(shop, buyByPurse),
    () => buyOneByOne(shop, buyRaw),
  ])
  for (const [name, of] of [
    ['purchase p50, one in flight', (one: Alone) => one.p50],
    ["purchase p50 above the seller's own time, one in flight", (one: Alone) => one.aboveSeller],
  ] as const) {
    yield rowOf({ name, unit: 'ms', detail: BESIDE }, ours!.map(of), baseline!.map(of))
  }
}

/**
 * Holds two median durations in milliseconds: of the whole purchase, and of the part of the purchase that the seller
 * does not cause.
 */
type Alone = { p50: number; aboveSeller: number }

async function buyOneByOne(
  shop: Shop,
  buy: (shop: Shop, count: number, inFlight: number) => Promise<Bought>,
): Promise<Alone> {
  const asked = async () => (await (await fetch(new URL('/times', shop.url))).json()) as number[]
  await asked()
  const { times } = await buy(shop, FEW, 1)
  const sold = await asked()
  if (sold.length !== 2 * times.length) throw new Error(`${sold.length} answers of the seller`)
  return {
    p50: median(times),
    aboveSeller: median(times.map((ms, n) => ms - sold[2 * n]! - sold[2 * n + 1]!)),
  }
}

const compareRates = (shop: Shop, detail: string): Promise<Row> =>
  compare({
    name: `purchases, ${IN_FLIGHT} in flight`,
    unit: 'purchases/s',
    detail,
    ours: async () => rateOf(await buyByPurse(shop, MANY, IN_FLIGHT)),
    baseline: async () => rateOf(await buyRaw(shop, MANY, IN_FLIGHT)),
  })

/**
 * Returns the number of purchases per second. The measurement starts when the first IN_FLIGHT purchases have ended. If
 * it started earlier, a buyer that begins in the middle of a block would gain or lose up to a block time.
 */
function rateOf({ ends }: Bought): number {
  const sorted = ends.toSorted((a, b) => a - b)
  const fromMs = sorted[IN_FLIGHT - 1]!
  return ((sorted.length - IN_FLIGHT) * 1000) / (sorted.at(-1)! - fromMs)
}

let keys = 0

async function buyByPurse(
  { url, api, key }: Shop,
  count: number,
  inFlight: number,
): Promise<Bought> {
  const times: number[] = []
  const ends: number[] = []
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
      const nowMs = performance.now()
      times.push(nowMs - beganMs)
      ends.push(nowMs - startedMs)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
  return { times, ends }
}

/** Buys with the x402 reference client in a separate Node process. */
async function buyRaw({ url }: Shop, count: number, inFlight: number): Promise<Bought> {
  const { privateKey } = DEVNET_ACCOUNTS.payer
  const child = Bun.spawn(['node', 'test/clients/purchases.mjs'], {
    stdin: new TextEncoder().encode(JSON.stringify({ url, privateKey, count, inFlight })),
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return JSON.parse(await new Response(child.stdout).text())
}
