/** Makes purses (wallets that pay) and purchases in a test database with the functions of the service. */
import { createHash, randomBytes } from 'node:crypto'
import { parseConfig } from '../../../shared/config/config.ts'
import { chooseOffer, type Offer, readChallenge } from '../../../shared/purse/offers.ts'
import { termsHash } from '../../../shared/purse/termsHash.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import type { Pool } from '../../../sql/db.ts'
import { createKeyringSource, masterKeys } from '../../../sql/keyring/keyring.ts'
import { giveMandate, listMandates, type MandateTerms } from '../../../sql/purse/mandates.ts'
import { acceptPurchase } from '../../../sql/purse/purchases/acceptPurchase.ts'
import { startAsking } from '../../../sql/purse/purchases/purchaseSteps.ts'
import { reserve, type Wanted } from '../../../sql/purse/purchases/reserve.ts'
import { findPurse, openPurse } from '../../../sql/purse/purses.ts'
import { stopPurse } from '../../../sql/purse/stop.ts'
import { newProject } from '../till/tillRows.ts'

const network = USDC_NETWORKS['base-sepolia']
const HOST = 'seller.test'
const URL_PAID = `https://${HOST}/weather`
const PAYEE = `0x${'11'.repeat(20)}`
export const OTHER_PAYEE = `0x${'22'.repeat(20)}`
export const BALANCE = 1_000_000n
export const TERMS: MandateTerms = {
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

/** Describes the owner of a project as the actor of a change. */
export const ownerOf = (projectId: string) => ({
  projectId,
  keyPrefix: 'owner',
  requestId: 'req_1',
})

/** Makes a keyring that contains one new master key. */
export function newKeyring(pool: Pool): Promise<Keyring> {
  const master = parseConfig({ MASTER_KEYS: `test:${randomBytes(32).toString('base64')}` })
  return createKeyringSource(masterKeys(master))(pool)
}

/** Makes a project with a purse (wallet) and one mandate (a permission to pay) with the given terms. */
export async function newPurse(pool: Pool, keyring: Keyring, terms: Partial<MandateTerms> = {}) {
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
    wanted: async (price: bigint, payTo = PAYEE): Promise<Wanted> => {
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
    reserve: async (wanted: readonly Wanted[], dailyGas: number | null = null) =>
      (await reserve(pool, keyring, { projectId, wanted, dailyGas })).map((one) =>
        'reason' in one ? `${one.kind} ${one.reason}` : one.kind,
      ),
    async reserved() {
      const [mandate] = await listMandates(pool, { projectId, cursor: null, limit: 1 })
      const purse = await findPurse(pool, projectId)
      return [mandate!.reservedAtomic, purse!.openAtomic]
    },
  }
}

/**
 * Makes a stopped purse (wallet) that has signed the cancellations of a number of payments. @returns the id of its
 * project
 */
export async function newStoppedPurse(
  pool: Pool,
  keyring: Keyring,
  payments: number,
): Promise<string> {
  const purse = await newPurse(pool, keyring)
  const wanted: Wanted[] = []
  for (let n = 0; n < payments; n++) wanted.push(await purse.wanted(1_000n))
  await purse.reserve(wanted)
  await stopPurse(pool, keyring, ownerOf(purse.projectId))
  return purse.projectId
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
