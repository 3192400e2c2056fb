/** Tests which signed cancellations and transfers of purses (wallets) the service sends first. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { findProject } from '../../../sql/account/projects/projects.ts'
import { readBacklog } from '../../../sql/operations/statistics.ts'
import { takeCancellations } from '../../../sql/purse/stop.ts'
import { takeTransfers } from '../../../sql/purse/transferOut.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newKeyring, newStoppedPurse } from '../../support/purse/purseRows.ts'

const { network } = USDC_NETWORKS['base-sepolia']

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
beforeEach(async () => {
  await pool.query(`update purchases set money = 'released' where money = 'open'`)
})
afterAll(() => database[Symbol.asyncDispose]())

const stoppedWith = (payments: number) => newStoppedPurse(pool, keyring, payments)

/** Makes a purse (wallet) that has signed a number of transfers. @returns the id of its project */
async function sendingWith(transfers: number): Promise<string> {
  const projectId = await stoppedWith(transfers)
  await pool.query(
    `update purchases set transfer_signature = cancel_signature, cancel_signature = null where project_id = $1`,
    [projectId],
  )
  return projectId
}

for (const [name, signed, take] of [
  ['cancellation', stoppedWith, takeCancellations],
  ['transfer', sendingWith, takeTransfers],
] as const) {
  describe(`workers send each signed ${name} of a purse (wallet) in rotation with those of other purses`, () => {
    /** Claims signed cancellations or transfers for sending. @returns their projects */
    const taken = async (limit: number): Promise<string[]> => {
      const calls = await take(pool, network, limit)
      const { rows } = await pool.query<{ project_id: string }>(
        `select p.project_id from unnest($1::text[]) c (payer) join purses p on lower(p.address) = lower(c.payer)
         order by p.project_id`,
        [calls.map(({ payer }) => payer)],
      )
      return rows.map(({ project_id }) => project_id)
    }

    test(`many signed calls of the type ${name} of one project do not delay those of another project`, async () => {
      const many = await signed(4)
      const other = await signed(1)
      expect(await taken(2)).toEqual([many, other].toSorted())
      expect(await taken(10)).toEqual([many, many, many])
      expect(await taken(10)).toEqual([])
    })
  })
}

test('a project and the metrics show the gas of the cancellations and transfers that its purse (wallet) has signed today', async () => {
  const projectId = await stoppedWith(2)
  expect((await findProject(pool, projectId))?.purseGasToday).toBe(160_000)
  expect((await readBacklog(pool)).purseGas).toContainEqual({ projectId, gas: 160_000 })
  await pool.query('update purse_gas set day = day - 1 where project_id = $1', [projectId])
  expect((await findProject(pool, projectId))?.purseGasToday).toBe(0)
  expect((await readBacklog(pool)).purseGas).not.toContainEqual({ projectId, gas: 160_000 })
})
