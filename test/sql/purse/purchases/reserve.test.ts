/** Tests a group of payments from one purse. Each payment counts against the limits for the next payment. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash, randomBytes } from 'node:crypto'
import { parseConfig } from '../../../../shared/config/config.ts'
import { chooseOffer, type Offer, readChallenge } from '../../../../shared/purse/offers.ts'
import { termsHash } from '../../../../shared/purse/termsHash.ts'
import { USDC_NETWORKS } from '../../../../shared/till/usdc.ts'
import type { Keyring } from '../../../../shared/vault/envelope.ts'
import { createKeyringSource, masterKeys } from '../../../../sql/keyring/keyring.ts'
import { giveMandate, listMandates, type MandateTerms } from '../../../../sql/purse/mandates.ts'
import { acceptPurchase } from '../../../../sql/purse/purchases/acceptPurchase.ts'
import { findDuePurchase, startAsking } from '../../../../sql/purse/purchases/purchaseSteps.ts'
import { reserve, type Wanted } from '../../../../sql/purse/purchases/reserve.ts'
import { findPurse, openPurse } from '../../../../sql/purse/purses.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newProject } from '../../../support/till/tillRows.ts'

const network = USDC_NETWORKS['base-sepolia']
const HOST = 'seller.test'
const URL_PAID = `https://${HOST}/weather`
const [PAYEE, OTHER_PAYEE] = [`0x${'11'.repeat(20)}`, `0x${'22'.repeat(20)}`]
const BALANCE = 1_000_000n
const TERMS: MandateTerms = {
  name: 'Test',
  task: null,
  network: network.network,
  hosts: [HOST],
  resources: [],
  payees: null,
  perPaymentAtomic: 100_000n,
  limits: { hour: null, day: null, month: null, total: 10n * BALANCE },
  paymentsPerMinute: 100,
  askAboveAtomic: null,
  risePercent: 20,
  validFrom: null,
  validUntil: null,
}

let database: TestDatabase
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  const master = parseConfig({ MASTER_KEYS: `test:${randomBytes(32).toString('base64')}` })
  keyring = await createKeyringSource(masterKeys(master))(database.pool)
})
afterAll(() => database[Symbol.asyncDispose]())

/** Makes a project with a purse and one mandate with the given terms. */
async function newPurse(terms: Partial<MandateTerms> = {}) {
  const { pool } = database
  const projectId = await newProject(pool)
  const actor = { projectId, keyPrefix: 'test', requestId: 'test' }
  await openPurse(pool, keyring, actor)
  await pool.query(
    'update purses set balance_atomic = $2, balance_block = 1 where project_id = $1',
    [projectId, String(BALANCE)],
  )
  await giveMandate(pool, actor, { ...TERMS, ...terms })
  return {
    projectId,
    wanted: async (price: bigint, payTo = PAYEE!): Promise<Wanted> => {
      const request = { method: 'GET' as const, url: URL_PAID, headers: {}, body: null }
      const accepted = await acceptPurchase<never>(pool, {
        ...{ actor, keyring, request, kind: 'payment', credential: null, tool: null, why: null },
        target: { method: 'GET', host: HOST, path: '/weather' },
        requestHash: createHash('sha256').update('x').digest(),
        key: randomBytes(8).toString('hex'),
        maxAtomic: 100_000n,
      })
      if (accepted.kind !== 'ok') throw new Error(accepted.kind)
      await startAsking(pool, accepted.id, keyring)
      const offer = offerOf(price, payTo)
      return { id: accepted.id, url: URL_PAID, offer, termsHash: termsHash(offer) }
    },
    reserve: async (wanted: readonly Wanted[]) =>
      (await reserve(pool, keyring, { projectId, wanted })).map((one) =>
        'reason' in one ? `${one.kind} ${one.reason}` : one.kind,
      ),
    async reserved() {
      const [mandate] = await listMandates(pool, { projectId, cursor: null, limit: 1 })
      const purse = await findPurse(pool, projectId)
      return [mandate!.reservedAtomic, purse!.openAtomic]
    },
  }
}

function offerOf(price: bigint, payTo: string): Offer {
  const accepts = [
    {
      scheme: 'exact',
      network: network.network,
      maxAmountRequired: String(price),
      asset: network.usdcAddress,
      payTo,
      maxTimeoutSeconds: 60,
      resource: URL_PAID,
      description: '',
      mimeType: '',
      extra: { name: 'USDC', version: network.eip712Version },
    },
  ]
  const challenge = readChallenge(null, JSON.stringify({ x402Version: 1, error: '', accepts }))!
  const chosen = chooseOffer(challenge, { url: URL_PAID, network, payer: `0x${'33'.repeat(20)}` })
  if (!chosen.ok) throw new Error(chosen.reason)
  return chosen.offer
}

test('a group of payments never exceeds the limits of the mandate', async () => {
  const purse = await newPurse({ limits: { ...TERMS.limits, day: 25_000n } })
  const wanted = [10_000n, 10_000n, 6_000n, 5_000n, 1n]
  const group = []
  for (const price of wanted) group.push(await purse.wanted(price))
  expect(await purse.reserve(group)).toEqual([
    'signed',
    'signed',
    'refused mandate_exceeded',
    'signed',
    'refused mandate_exceeded',
  ])
  expect(await purse.reserved()).toEqual([25_000n, 25_000n])
})

test('a group of payments never exceeds the limit on payments a minute', async () => {
  const purse = await newPurse({ paymentsPerMinute: 2 })
  const group = [await purse.wanted(1n), await purse.wanted(1n), await purse.wanted(1n)]
  expect(await purse.reserve(group)).toEqual(['signed', 'signed', 'refused too_many_payments'])
})

test('a group of purchases spends no more than the balance of the purse', async () => {
  const purse = await newPurse({ perPaymentAtomic: BALANCE, risePercent: 1_000_000 })
  await database.pool.query('update purses set balance_atomic = 150000 where project_id = $1', [
    purse.projectId,
  ])
  const group = [
    await purse.wanted(100_000n),
    await purse.wanted(60_000n),
    await purse.wanted(50_000n),
  ]
  expect(await purse.reserve(group)).toEqual(['signed', 'refused insufficient_funds', 'signed'])
})

test('within a group of purchases, a new payee and a risen price are noticed', async () => {
  const purse = await newPurse()
  const group = [
    await purse.wanted(1_000n),
    await purse.wanted(1_000n, OTHER_PAYEE),
    await purse.wanted(1_200n),
    await purse.wanted(1_201n),
  ]
  expect(await purse.reserve(group)).toEqual([
    'signed',
    'ask new_payee',
    'signed',
    'ask price_rose',
  ])
  const later = [await purse.wanted(1_201n), await purse.wanted(900n), await purse.wanted(1_081n)]
  expect(await purse.reserve(later)).toEqual(['ask price_rose', 'signed', 'ask price_rose'])
})

test('the warning of a mandate is recorded once, for the payment that passes the threshold', async () => {
  const purse = await newPurse({ limits: { ...TERMS.limits, total: 10_000n } })
  const group = [await purse.wanted(8_000n), await purse.wanted(1_000n), await purse.wanted(1_000n)]
  await purse.reserve(group)
  const { rows } = await database.pool.query(
    `select data->>'percent' as percent, data->>'usedUsdcRaw' as used from events
     where project_id = $1 and type = 'purse.warned' order by seq`,
    [purse.projectId],
  )
  expect(rows).toEqual([
    { percent: '80', used: '8000' },
    { percent: '95', used: '10000' },
  ])
})

test('a purchase of another project, or a purchase that is signed already, is not signed', async () => {
  const [mine, others] = [await newPurse(), await newPurse()]
  const [first, foreign] = [await mine.wanted(1n), await others.wanted(1n)]
  expect(await mine.reserve([foreign, first])).toEqual(['not_due', 'signed'])
  expect(await mine.reserve([first])).toEqual(['not_due'])
  expect((await findDuePurchase(database.pool, first.id))?.state).toBe('signed')
  expect(await others.reserved()).toEqual([0n, 0n])
})
