/** Tests which price and resource a seller may demand, and which projects can sell. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createSecretKey } from 'node:crypto'
import { ApiError } from '../../../../api/http/errors.ts'
import { loadSeller, readOffer } from '../../../../api/till/payments/offer.ts'
import { createTillBatchers } from '../../../../api/till/payments/tillBatchers.ts'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import { Keyring } from '../../../../shared/vault/envelope.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { putEndpoint } from '../../../../sql/till/endpoints/endpointChanges.ts'
import { recordVerification } from '../../../../sql/till/endpoints/endpoints.ts'
import { NO_SETTLEMENT_LIMITS } from '../../../../sql/till/settle/settlementBudgets.ts'
import { recordHead, recordRpcTrouble } from '../../../../sql/till/watch/chainStatus.ts'
import { changeProject } from '../../../support/changeProject.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newProject } from '../../../support/till/tillRows.ts'

const PAY_TO = DEVNET_ACCOUNTS.payTo.address
const RIVAL = DEVNET_ACCOUNTS.payer.address
const RESOURCE = 'https://api.example/report'
const MATCH_KEY = 'api.example/report'
const keyring = new Keyring([{ id: 'k1', key: createSecretKey(new Uint8Array(32)) }])

let database: TestDatabase
let pool: TestDatabase['pool']
let projectId: string
let endpointId: string
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  await knowChain()
  projectId = await newSeller()
  endpointId = await sell(projectId, MATCH_KEY)
})
afterAll(() => database[Symbol.asyncDispose]())

const knowChain = () =>
  recordHead(pool, { network: 'base-sepolia', chainId: 84532, number: 7n, hash: '0x7' })

async function newSeller(payTo: string = PAY_TO): Promise<string> {
  const id = await newProject(pool)
  await changeProject(pool, id, { paymentsEnabled: true, payTo })
  return id
}

async function sell(project: string, matchKey: string, active = true): Promise<string> {
  const { endpoint } = (await putEndpoint(pool, keyring, {
    ...{ projectId: project, matchKey, urlPattern: `https://${matchKey}`, active },
    ...{ priceAtomic: 10_000n, network: 'base-sepolia', discoverable: true },
  }))!
  return endpoint.id
}

type Input = Parameters<typeof readOffer>[2]
const read = (changes: Partial<Input> = {}, project = projectId) =>
  readOffer(
    {
      ...createTillBatchers(pool, NO_SETTLEMENT_LIMITS),
      config: { minPriceAtomic: 1_000 },
    } as never,
    project,
    { amount: '0.01', resource: RESOURCE, ...changes },
  )
/**
 * Returns the status and the message of the error with which the service refuses an offer (a resource with its price).
 */
async function faultOf(reading: Promise<unknown>): Promise<string> {
  const error = await reading.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (error instanceof ApiError) return `${error.status} ${error.message}`
  throw error ?? new Error('the offer was read')
}

describe('the service makes an offer (a resource with its price) from a seller’s fields, and refuses a wrong price, network or resource', () => {
  test('a seller’s offer (a resource with its price) contains the seller, the endpoint, and the normalised URL of the paid resource', async () => {
    const description = 'A report'
    const offer = await read({ resource: 'HTTPS://API.Example:443/report?x=1#y', description })
    expect(offer).toEqual({
      ...{ seller: { projectId, payTo: PAY_TO, network: 'base-sepolia', chainId: 84532 } },
      ...{ endpointId, verification: 'pending', matchKey: MATCH_KEY, resource: RESOURCE },
      ...{ resourceSource: 'seller', amountAtomic: 10_000n, description },
      ...{ metadata: {}, discoverable: true },
    })
    expect((await read()).description).toBeNull()
  })

  test('in a seller’s offer (a resource with its price), the field network is absent or names the service’s chain in either x402 spelling', async () => {
    for (const network of ['base-sepolia', 'eip155:84532']) {
      expect((await read({ network })).endpointId).toBe(endpointId)
    }
    for (const network of ['base', 'eip155:8453', 'solana', '']) {
      expect(await faultOf(read({ network }))).toBe(
        '400 network must be "base-sepolia", the connected chain',
      )
    }
  })

  test.each<[Partial<Input>, string]>([
    [{ amount: '0.000999' }, 'amount must be at least 0.001 USDC on this service'],
    [{ amount: '0' }, 'amount must be above 0'],
    [{ resource: 'report' }, 'resource must be an absolute http or https URL'],
    [
      { resource: 'https://api.example/other' },
      'resource must match a registered, active endpoint of the project',
    ],
  ])('the service refuses an offer with the fields %j', async (change, message) => {
    expect(await faultOf(read(change))).toBe(`400 ${message}`)
  })

  test('a seller may offer a resource for exactly the minimum price of the service', async () => {
    expect((await read({ amount: '0.001' })).amountAtomic).toBe(1_000n)
  })

  test('after a check found another project’s address in the 402 response of a resource, a seller may not offer this resource', async () => {
    const matchKey = 'rival.example/a'
    await sell(projectId, matchKey)
    const id = await sell(await newSeller(RIVAL), matchKey)
    const resource = `https://${matchKey}`
    expect((await read({ resource })).resource).toBe(resource)
    await recordVerification(pool, {
      ...{ id, url: resource, status: 'verified', detail: '', versions: [1] },
      ...{ payees: [RIVAL.toLowerCase()], seen: {} },
    })
    expect(await faultOf(read({ resource }))).toStartWith(
      '400 resource must not be that of another project',
    )
  })
})

describe('a project can sell only with enabled payments, a payTo address and a chain that a payment worker has reported', () => {
  const forbidden = '403 Payments are not enabled for this project'
  test('a project can make an offer only if payments are enabled and the project has a payTo address', async () => {
    const none = await newProject(pool)
    const disabled = await newSeller()
    await changeProject(pool, disabled, { paymentsEnabled: false })
    const gone = await newSeller()
    await deleteProject(pool, gone, null)
    const homeless = await newSeller()
    await pool.query('update projects set pay_to = null where id = $1', [homeless])
    for (const project of [none, disabled, gone, homeless, 'prj_unknown']) {
      expect([project, await faultOf(loadSeller(pool, project))]).toEqual([project, forbidden])
      expect([project, await faultOf(read({}, project))]).toEqual([project, forbidden])
    }
    expect(await loadSeller(pool, projectId)).toEqual({
      ...{ projectId, payTo: PAY_TO, network: 'base-sepolia', chainId: 84532 },
    })
  })

  test('a project can make an offer only after a payment worker has reported its chain', async () => {
    const unknown = '503 No payment worker has connected to the chain yet'
    await pool.query('delete from chain_status')
    expect(await faultOf(loadSeller(pool, projectId))).toBe(unknown)
    await recordRpcTrouble(pool, 'no answer')
    expect(await faultOf(read())).toBe(unknown)
    await knowChain()
    expect((await read()).seller.network).toBe('base-sepolia')
  })
})
