/**
 * Runs the job of a purchase alone on a test database. The seller is a fake seller on this machine that settles no
 * payment.
 */
import { createHash, randomBytes } from 'node:crypto'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import { encodeHeader } from '../../../shared/till/x402v2.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { checkUseRequest, type UseRequest } from '../../../shared/vault/useRequest.ts'
import type { Pool } from '../../../sql/db.ts'
import type { MandateTerms } from '../../../sql/purse/mandates.ts'
import { acceptPurchase } from '../../../sql/purse/purchases/acceptPurchase.ts'
import { recordHead } from '../../../sql/till/watch/chainStatus.ts'
import { storeCredential } from '../../../sql/vault/credentials.ts'
import { createBuy } from '../../../workers/purse/buy.ts'
import { Lanes, PURSE_LIMITS } from '../../../workers/queue/lanes.ts'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'
import { newProject, row } from '../till/tillRows.ts'
import { newKeyring, newPurse } from './purseRows.ts'

const NETWORK = USDC_NETWORKS['base-sepolia']
export const DENIED = `0x${'de'.repeat(20)}`
export const PAYEE = `0x${'11'.repeat(20)}`

type Json = Record<string, unknown>

/**
 * Makes the response of the fake seller to a request of the buyer. The function gets the header with a payment or a
 * sign-in (name and value) as one text, or null if there is none.
 */
type Answer = (request: Request, paid: string | null) => Response | Promise<Response>

export type Shop = {
  url: string
  host: string
  /** Lists the requests of the buyer. Each entry is `ask`, `sign-in`, or the payment header of the request. */
  heard: string[]
  ask: Answer
  signIn: Answer
  serve: Answer
}

/** Returns the 402 response of a seller. */
export function challenge(terms: Json = {}, more: Json = {}): Response {
  const accepts = [
    {
      ...{ scheme: 'exact', network: 'eip155:84532', amount: '10000', asset: NETWORK.usdcAddress },
      ...{ payTo: PAYEE, maxTimeoutSeconds: 60, extra: { name: 'USDC', version: '2' }, ...terms },
    },
  ]
  const body = { x402Version: 2, accepts, ...more }
  return new Response('{}', { status: 402, headers: { 'payment-required': encodeHeader(body) } })
}

/** Describes a started test scene: a database with a chain, and the function that runs the job of a purchase. */
export type BuyScene = AsyncDisposable & {
  pool: Pool
  databaseUrl: string
  keyring: Keyring
  shop: Shop
  run(id: string, given?: { allowPrivate?: boolean }): Promise<void>
  purchase(id: string): Promise<any>
  /** Returns the milliseconds until the queued job of a purchase runs. */
  pauseMs(id: string): Promise<number>
  /**
   * Makes a project with a purse (a wallet that pays) and a mandate that permits payments to the fake shop. If `purse`
   * is false, the project has no purse.
   */
  newProject(given?: { purse?: boolean; terms?: Partial<MandateTerms> }): Promise<string>
  /** Stores the credential `weather` for one host. */
  store(projectId: string, host: string): Promise<void>
  /** Accepts a purchase, by default for a new project, and returns its id. */
  accept(given?: Accepted): Promise<string>
}

export type Accepted = {
  projectId?: string
  kind?: 'payment' | 'quote'
  tool?: string | null
  credential?: string | null
  request?: Partial<UseRequest>
}

/** Holds the secret of the credential `weather`. */
export const SECRET = 'sk_live_correct-horse-battery'
const actorOf = (projectId: string) => ({ projectId, keyPrefix: 'test', requestId: 'test' })
const HEADERS = ['payment-signature', 'x-payment']

export async function startBuyScene(): Promise<BuyScene> {
  const database: TestDatabase = await createTestDatabase()
  const { pool } = database
  const keyring = await newKeyring(pool)
  await recordHead(pool, { network: NETWORK.network, chainId: 84532, number: 7n, hash: '0x7' })
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const payment = HEADERS.map((name) => request.headers.get(name)).find((one) => one !== null)
      const signIn = request.headers.get('sign-in-with-x')
      shop.heard.push(payment ?? (signIn === null ? 'ask' : 'sign-in'))
      if (payment !== undefined) return shop.serve(request, payment)
      return signIn === null ? shop.ask(request, null) : shop.signIn(request, signIn)
    },
  })
  const shop = {
    url: `http://127.0.0.1:${server.port}/weather`,
    host: `127.0.0.1:${server.port}`,
  } as Shop
  openShop(shop)
  const buy = (allowPrivate: boolean) =>
    createBuy(
      {
        pool,
        lanes: new Lanes(100, PURSE_LIMITS),
        outcomes: { record: (work: () => unknown) => work(), settle: async () => {} },
      } as never,
      {
        keyring: async () => keyring,
        policy: { allowPrivate },
        deniedPayees: new Set([DENIED]),
        dailyGas: null,
      },
    )
  const runs = { open: buy(true), closed: buy(false) }
  const scene: BuyScene = {
    pool,
    databaseUrl: database.url,
    keyring,
    shop,
    run: (id, { allowPrivate = true } = {}) =>
      (allowPrivate ? runs.open : runs.closed)({ purchaseId: id }, { attempt: 1 }),
    purchase: (id) => row(pool, 'purchases', id),
    async pauseMs(id) {
      const { rows } = await pool.query(
        `select extract(epoch from run_at - clock_timestamp()) * 1000 as ms from graphile_worker.jobs where key = $1`,
        [`buy:${id}`],
      )
      return Number(rows[0].ms)
    },
    async newProject({ purse = true, terms = {} } = {}) {
      if (!purse) return newProject(pool)
      return (await newPurse(pool, keyring, { hosts: [shop.host], ...terms })).projectId
    },
    async store(projectId, host) {
      await storeCredential(pool, {
        ...{ actor: actorOf(projectId), keyring, name: 'weather', isOwner: true },
        content: {
          ...{ type: 'API_KEY', data: { apiKey: SECRET }, metadata: {}, expiresAt: null },
          ...{ allowedHosts: [host], placement: ['header:authorization'] },
        },
      })
    },
    async accept({ projectId, kind = 'payment', tool = null, credential = null, request } = {}) {
      const wanted: UseRequest = {
        ...{ method: 'GET', url: shop.url, headers: {}, body: null },
        ...request,
      }
      const actor = actorOf(projectId ?? (await scene.newProject()))
      const accepted = await acceptPurchase<never>(pool, {
        ...{ actor, keyring, request: wanted, kind, tool, why: null, maxAtomic: 100_000n },
        credential: credential === null ? null : { name: credential, judge: () => null },
        target: checkUseRequest(wanted, { allowLoopback: true }),
        requestHash: createHash('sha256').update('x').digest(),
        key: kind === 'quote' ? null : randomBytes(8).toString('hex'),
      })
      if (accepted.kind !== 'ok') throw new Error(accepted.kind)
      return accepted.id
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true)
      await database[Symbol.asyncDispose]()
    },
  }
  return scene
}

/** Makes the fake shop demand a payment, and serve its content after the payment. */
export function openShop(shop: Shop): void {
  shop.heard = []
  shop.ask = () => challenge()
  shop.signIn = () => new Response('welcome back')
  shop.serve = () => new Response('sunny')
}
