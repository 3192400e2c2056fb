/**
 * Tests how the facilitator reads a seller's payment requirements, which of them it refuses, and which resource is
 * paid.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createSecretKey } from 'node:crypto'
import {
  type FacilitatorOffer,
  readFacilitatorOffer,
} from '../../../../api/till/facilitator/facilitatorOffer.ts'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import { USDC_NETWORKS } from '../../../../shared/till/usdc.ts'
import type { DecodedPayment } from '../../../../shared/till/x402.ts'
import { Keyring } from '../../../../shared/vault/envelope.ts'
import { deleteEndpoint, putEndpoint } from '../../../../sql/till/endpoints/endpointChanges.ts'
import { recordVerification } from '../../../../sql/till/endpoints/endpoints.ts'
import { changeProject } from '../../../support/changeProject.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newProject } from '../../../support/till/tillRows.ts'

const NETWORK = USDC_NETWORKS['base-sepolia']
const PAY_TO = DEVNET_ACCOUNTS.payTo.address
const RIVAL = DEVNET_ACCOUNTS.payer.address
const MIN_ATOMIC = 1_000
const RESOURCE = 'https://api.example/report'
const keyring = new Keyring([{ id: 'k1', key: createSecretKey(new Uint8Array(32)) }])

type Json = Record<string, unknown>

let database: TestDatabase
let projectId: string
let endpointId: string
beforeAll(async () => {
  database = await createTestDatabase()
  projectId = await newSeller(PAY_TO)
  endpointId = await sell(projectId, 'api.example/report')
})
afterAll(() => database[Symbol.asyncDispose]())

async function newSeller(payTo: string): Promise<string> {
  const id = await newProject(database.pool)
  await changeProject(database.pool, id, { paymentsEnabled: true, payTo })
  return id
}

async function sell(project: string, matchKey: string, discoverable = false): Promise<string> {
  const { endpoint } = (await putEndpoint(database.pool, keyring, {
    ...{ projectId: project, matchKey, urlPattern: `https://${matchKey}`, discoverable },
    ...{ priceAtomic: 10_000n, network: 'base-sepolia' },
  }))!
  return endpoint.id
}

/**
 * Returns a decoded payment of the given x402 version, in which only the version and the named resource matter.
 */
const payment = (x402Version: 1 | 2, resourceUrl?: string): DecodedPayment => ({
  ok: true,
  payload: {
    ...{ x402Version, scheme: 'exact', network: 'base-sepolia', payload: {} as never },
    ...(resourceUrl === undefined ? {} : { resourceUrl }),
  },
})

const V1 = {
  ...{ scheme: 'exact', network: 'base-sepolia', maxAmountRequired: '10000', resource: RESOURCE },
  ...{ description: 'A report', mimeType: 'text/plain', payTo: PAY_TO, maxTimeoutSeconds: 60 },
  asset: NETWORK.usdcAddress,
}
const V2 = {
  ...{ scheme: 'exact', network: 'eip155:84532', amount: '10000', payTo: PAY_TO },
  ...{ maxTimeoutSeconds: 60, asset: NETWORK.usdcAddress },
}

const read = (decoded: DecodedPayment, requirements: unknown): Promise<FacilitatorOffer> =>
  readFacilitatorOffer(
    { pool: database.pool, config: { minPriceAtomic: MIN_ATOMIC } } as never,
    { projectId, payTo: PAY_TO, network: 'base-sepolia', chainId: NETWORK.chainId },
    decoded,
    requirements,
  )
const readV1 = (changes: Json = {}, copy?: string) => read(payment(1, copy), { ...V1, ...changes })
const readV2 = (changes: Json = {}, copy?: string) => read(payment(2, copy), { ...V2, ...changes })

/** Returns the reason why the facilitator refuses payment requirements. */
const reasonOf = async (reading: Promise<FacilitatorOffer>) => {
  const read = await reading
  return read.ok ? 'accepted' : read.reason
}
/** Returns the offer (a resource with its price) that the facilitator reads from accepted payment requirements. */
async function offerOf(reading: Promise<FacilitatorOffer>) {
  const read = await reading
  if (!read.ok) throw new Error(read.reason)
  return { ...read.offer, endpoint: read.endpoint?.id ?? null }
}

describe('the facilitator accepts payment requirements of a seller, or refuses them with the reason', () => {
  test('the payment requirements must have the same x402 version as the payment', async () => {
    expect(await reasonOf(readV1())).toBe('accepted')
    expect(await reasonOf(readV2())).toBe('accepted')
    expect(await reasonOf(read(payment(1), V2))).toBe('invalid_payment_requirements')
    expect(await reasonOf(read(payment(2), V1))).toBe('invalid_payment_requirements')
    for (const nothing of [null, undefined, 'text', [], {}]) {
      expect(await reasonOf(read(payment(1), nothing))).toBe('invalid_payment_requirements')
      expect(await reasonOf(read(payment(2), nothing))).toBe('invalid_payment_requirements')
    }
  })

  test('payment requirements are not read if the payment’s x402 version is unknown, but are read if the payment has another fault', async () => {
    const malformed = (reason: 'invalid_x402_version' | 'invalid_payload', x402Version: 1 | 2) =>
      ({ ok: false, x402Version, reason, detail: '' }) as const
    const unknown = malformed('invalid_x402_version', 1)
    expect(await reasonOf(read(unknown, V1))).toBe('invalid_x402_version')
    expect(await reasonOf(read(malformed('invalid_payload', 1), V1))).toBe('accepted')
    expect(await reasonOf(read(malformed('invalid_payload', 2), V2))).toBe('accepted')
  })

  test('payment requirements with several faults are refused with the reason of the first fault', async () => {
    const faults: [Json, string][] = [
      [{ scheme: 'upto', network: 'base' }, 'unsupported_scheme'],
      [{ network: 'base', asset: PAY_TO }, 'invalid_network'],
      [{ network: 'eip155:8453' }, 'invalid_network'],
      [{ asset: USDC_NETWORKS.base.usdcAddress }, 'invalid_payment_requirements'],
      [{ payTo: RIVAL }, 'invalid_payment_requirements'],
    ]
    for (const [change, reason] of faults) {
      expect([change, await reasonOf(readV1(change))]).toEqual([change, reason])
      expect([change, await reasonOf(readV2(change))]).toEqual([change, reason])
    }
    const { usdcAddress: asset } = NETWORK
    const lower = { asset: asset.toLowerCase(), payTo: PAY_TO.toLowerCase() }
    const upper = {
      asset: `0x${asset.slice(2).toUpperCase()}`,
      payTo: `0x${PAY_TO.slice(2).toUpperCase()}`,
    }
    for (const change of [{ network: 'eip155:84532' }, { network: 'base-sepolia' }, lower, upper]) {
      expect([change, await reasonOf(readV1(change))]).toEqual([change, 'accepted'])
      expect([change, await reasonOf(readV2(change))]).toEqual([change, 'accepted'])
    }
  })

  test('if payment requirements of x402 version 2 name a token in extra, it must be USDC, and a transfer method must be EIP-3009', async () => {
    const cases: [Json, string][] = [
      [{}, 'accepted'],
      [{ name: 'USDC', version: '2', assetTransferMethod: 'eip3009' }, 'accepted'],
      [{ name: 'USD Coin' }, 'invalid_exact_evm_token_name_mismatch'],
      [{ name: null }, 'invalid_exact_evm_token_name_mismatch'],
      [{ name: 'USD Coin', version: '1' }, 'invalid_exact_evm_token_name_mismatch'],
      [{ version: '1' }, 'invalid_exact_evm_token_version_mismatch'],
      [{ version: 2 }, 'invalid_exact_evm_token_version_mismatch'],
      [{ assetTransferMethod: 'permit2' }, 'unsupported_payload_type'],
      [{ assetTransferMethod: null }, 'unsupported_payload_type'],
    ]
    for (const [extra, reason] of cases) {
      expect([extra, await reasonOf(readV2({ extra }))]).toEqual([extra, reason])
      expect([extra, await reasonOf(readV1({ extra }))]).toEqual([extra, 'accepted'])
    }
    for (const reading of [readV1({ extra: null }), readV2({ extra: null })]) {
      expect(await reasonOf(reading)).toBe('accepted')
    }
  })

  test('payment requirements must ask for at least the minimum price of the service', async () => {
    expect(await reasonOf(readV1({ maxAmountRequired: '999' }))).toBe(
      'invalid_payment_requirements',
    )
    expect(await reasonOf(readV2({ amount: '999' }))).toBe('invalid_payment_requirements')
    expect((await offerOf(readV1({ maxAmountRequired: '1000' }))).amountAtomic).toBe(1_000n)
    expect((await offerOf(readV2({ amount: '1000' }))).amountAtomic).toBe(1_000n)
  })
})

describe('if a seller names the paid resource in the payment requirements, the payment belongs to this resource', () => {
  test('the paid resource is the normalised URL that the seller names, and belongs to the endpoint that is registered for it', async () => {
    for (const reading of [
      readV1({ resource: 'HTTPS://API.Example:443/report?x=1' }),
      readV2({ extra: { resource: 'HTTPS://API.Example:443/report?x=1' } }),
    ]) {
      expect(await offerOf(reading)).toMatchObject({
        ...{ resource: RESOURCE, resourceSource: 'seller', matchKey: 'api.example/report' },
        ...{ endpointId, endpoint: endpointId, verification: 'pending', discoverable: false },
      })
    }
  })

  test('if the seller and the payer name different resources, the seller’s resource counts', async () => {
    const named = { extra: { resource: RESOURCE } }
    for (const reading of [
      readV1({}, 'https://api.example/other'),
      readV2(named, 'https://api.example/other'),
      readV2(named, 'no URL'),
    ]) {
      expect(await offerOf(reading)).toMatchObject({ resource: RESOURCE, resourceSource: 'seller' })
    }
  })

  test('the seller may name a resource without a registered endpoint, or demand a price other than the endpoint’s price', async () => {
    const resource = 'https://api.example/new'
    for (const reading of [readV1({ resource }), readV2({ extra: { resource } })]) {
      expect(await offerOf(reading)).toMatchObject({
        ...{ resource, endpointId: null, endpoint: null, matchKey: null, verification: null },
        discoverable: false,
      })
    }
    expect((await offerOf(readV1({ maxAmountRequired: '20000' }))).endpointId).toBe(endpointId)
    expect((await offerOf(readV1({ resource: 'mcp://tool/report' }))).resource).toBe(
      'mcp://tool/report',
    )
  })

  test('the seller names the resource with at most 2,048 characters, as a web address or an MCP tool', async () => {
    const base = 'https://api.example/'
    const longest = base + 'x'.repeat(2_048 - base.length)
    for (const resource of [longest, 'mcp://tool/a.b']) {
      expect(await reasonOf(readV1({ resource }))).toBe('accepted')
      expect(await reasonOf(readV2({ extra: { resource } }))).toBe('accepted')
    }
    for (const resource of [
      ...[`${longest}x`, 'report', '', 'ftp://api.example/', 'urn:x:y', 'https:api.example/a'],
      ...['mcp://tool/a b', 'https://ada@api.example/', 7, ['https://api.example/']],
    ]) {
      const reasons = [
        await reasonOf(readV1({ resource })),
        await reasonOf(readV2({ extra: { resource } })),
      ]
      expect([resource, ...reasons]).toEqual([
        resource,
        ...Array(2).fill('invalid_payment_requirements'),
      ])
    }
  })

  test('the service keeps the description of the paid resource only for x402 version 1', async () => {
    expect((await offerOf(readV1())).description).toBe('A report')
    expect((await offerOf(readV2({ description: 'A report' }))).description).toBeNull()
  })

  test('a long description of a paid resource is cut, and a long media type is accepted, because x402 does not limit their length', async () => {
    const description = `${'x'.repeat(499)}\u{1f30d}${'y'.repeat(3_000)}`
    const offer = await offerOf(readV1({ description, mimeType: `text/${'p'.repeat(300)}` }))
    expect(offer.description).toBe('x'.repeat(499))
  })

  test('a resource counts as publicly listed if the endpoint of the resource is in the public list', async () => {
    await sell(projectId, 'api.example/listed', true)
    const resource = 'https://api.example/listed'
    expect((await offerOf(readV1({ resource }))).discoverable).toBe(true)
    expect((await offerOf(readV2({}, resource))).discoverable).toBe(true)
  })

  test('a resource is refused if another project has a verified endpoint for this resource, and the 402 response names that project’s address', async () => {
    const rival = await newSeller(RIVAL)
    const id = await sell(rival, 'rival.example/a')
    const resource = 'https://rival.example/a'
    const readings = () =>
      Promise.all([
        reasonOf(readV1({ resource })),
        reasonOf(readV2({ extra: { resource } })),
        reasonOf(readV2({}, resource)),
      ])
    expect(new Set(await readings())).toEqual(new Set(['accepted']))
    const verified = { id, url: resource, status: 'verified', detail: '', versions: [1] } as const
    await recordVerification(database.pool, {
      ...{ ...verified, payees: [RIVAL.toLowerCase()], seen: {} },
    })
    expect(new Set(await readings())).toEqual(new Set(['resource_of_another_project']))
  })
})

describe('if only the payer names the paid resource, the facilitator accepts the payment', () => {
  test('if only the payer names the resource, the payment is accepted, and its endpoint is found if the amount equals the endpoint’s price', async () => {
    for (const extra of [undefined, null, {}, { resource: null }]) {
      expect(await offerOf(readV2({ extra }, `${RESOURCE}?x=1`))).toMatchObject({
        ...{ resource: RESOURCE, resourceSource: 'payer', matchKey: 'api.example/report' },
        ...{ endpointId, endpoint: endpointId },
      })
    }
    for (const amount of ['9999', '10001']) {
      expect(await offerOf(readV2({ amount }, RESOURCE))).toMatchObject({
        ...{ resource: RESOURCE, resourceSource: 'payer', matchKey: null },
        ...{ endpointId: null, endpoint: null, verification: null },
      })
    }
  })

  test('if only the payer names the resource, its endpoint is not found if it was deleted or if another project sells the resource', async () => {
    const gone = await sell(projectId, 'api.example/gone')
    await deleteEndpoint(database.pool, { projectId, id: gone })
    await sell(await newSeller(RIVAL), 'other.example/a')
    for (const resource of ['https://api.example/gone', 'https://other.example/a']) {
      expect(await offerOf(readV2({}, resource))).toMatchObject({ resource, endpointId: null })
    }
  })

  test('the paid resource counts as unspecified if the payer names no resource, or names no web address', async () => {
    for (const copy of [
      undefined,
      '',
      'report',
      'ftp://api.example/',
      'https:api.example/report',
    ]) {
      expect(await offerOf(readV2({}, copy))).toMatchObject({
        ...{ resource: 'urn:x402:unspecified', resourceSource: 'seller', matchKey: null },
        endpointId: null,
      })
    }
  })
})
