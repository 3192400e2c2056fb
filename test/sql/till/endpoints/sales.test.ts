/** Tests that one SQL statement for many sales finds the same rows as a separate statement for each sale. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createSecretKey } from 'node:crypto'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import { Keyring } from '../../../../shared/vault/envelope.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { deleteEndpoint, putEndpoint } from '../../../../sql/till/endpoints/endpointChanges.ts'
import {
  findEndpointByResource,
  recordVerification,
} from '../../../../sql/till/endpoints/endpoints.ts'
import { isSoldByAnother } from '../../../../sql/till/endpoints/rivalEndpoints.ts'
import { findSales, findSeller, type WantedSale } from '../../../../sql/till/endpoints/seller.ts'
import { recordHead } from '../../../../sql/till/watch/chainStatus.ts'
import { changeProject } from '../../../support/changeProject.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newProject } from '../../../support/till/tillRows.ts'

const { payTo, payer } = DEVNET_ACCOUNTS
let database: TestDatabase
let pool: TestDatabase['pool']
const keyring = new Keyring([{ id: 'k1', key: createSecretKey(new Uint8Array(32)) }])

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

async function newSeller(address: string | null, enabled = true): Promise<string> {
  const id = await newProject(pool)
  const change = { paymentsEnabled: enabled, ...(address === null ? {} : { payTo: address }) }
  await changeProject(pool, id, change)
  return id
}

async function sell(projectId: string, matchKey: string, payees: string[] | null): Promise<string> {
  const url = `https://${matchKey}`
  const price = { priceAtomic: 10_000n, network: 'base-sepolia' }
  const { id } = (await putEndpoint(pool, keyring, {
    projectId,
    matchKey,
    urlPattern: url,
    ...price,
  }))!.endpoint
  const verified = { id, url, status: 'verified', detail: '', versions: [1] } as const
  if (payees !== null) await recordVerification(pool, { ...verified, payees, seen: {} })
  return id
}

/** Reads the seller and the endpoint of one sale with two separate statements. */
async function readSale({ projectId, matchKey }: WantedSale) {
  const endpoint = await findEndpointByResource(pool, projectId, matchKey)
  return {
    seller: await findSeller(pool, projectId),
    endpoint: endpoint && {
      id: endpoint.id,
      verification: endpoint.verification.status,
      discoverable: endpoint.discoverable,
      metadata: endpoint.metadata,
    },
    isSoldByAnother: await isSoldByAnother(pool, projectId, matchKey),
  }
}

test('reading many sales in one call gives the same results in the same order as reading each sale separately', async () => {
  const seller = await newSeller(payTo.address)
  const rival = await newSeller(payer.address)
  const [unset, off, gone] = [
    await newSeller(null),
    await newSeller(payTo.address, false),
    await newSeller(payTo.address),
  ]
  await sell(seller, 'a.example/own', [payTo.address.toLowerCase()])
  await sell(seller, 'a.example/new', null)
  await sell(seller, 'a.example/stolen', null)
  await sell(rival, 'a.example/stolen', [payer.address.toLowerCase()])
  await sell(rival, 'a.example/claimed', ['0x00'])
  await sell(gone, 'a.example/own', [payTo.address.toLowerCase()])
  const dropped = await sell(seller, 'a.example/dropped', null)
  await deleteEndpoint(pool, { projectId: seller, id: dropped })
  await deleteProject(pool, gone, null)
  const paths = ['own', 'new', 'stolen', 'claimed', 'dropped', 'none']
  const wanted = [seller, rival, unset, off, gone, 'prj_none'].flatMap((projectId) =>
    paths.map((path) => ({ projectId, matchKey: `a.example/${path}` })),
  )
  const expectSame = async () => {
    const sales = await findSales(pool, [...wanted, ...wanted.toReversed()])
    const alone: Awaited<ReturnType<typeof readSale>>[] = []
    for (const sale of wanted) alone.push(await readSale(sale))
    expect(sales).toEqual([...alone, ...alone.toReversed()])
    return sales
  }
  expect((await expectSame())[0]?.seller).toMatchObject({ network: null, chainId: null })

  const hash = `0x${'01'.repeat(32)}`
  await recordHead(pool, { network: 'base-sepolia', chainId: 84532, number: 1n, hash })
  const sales = await expectSame()
  expect(sales[0]).toMatchObject({ endpoint: { verification: 'verified' }, isSoldByAnother: false })
  expect(sales[0]?.seller).toMatchObject({ payTo: payTo.address, chainId: 84532 })
  expect(sales[1]?.endpoint).toMatchObject({ verification: 'pending' })
  expect(sales[2]?.isSoldByAnother).toBe(true)
  expect(sales.slice(4 * paths.length, 5 * paths.length).map((sale) => sale.seller)).toEqual(
    paths.map(() => null),
  )
})
