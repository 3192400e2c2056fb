/**
 * Tests how the owner stops and resumes a purse (a wallet), and how the cancellations of its open payments are sent.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { transaction } from '../../../sql/db.ts'
import { resumePurse, stopPurse, takeCancellations } from '../../../sql/purse/stop.ts'
import { recordHead } from '../../../sql/till/watch/chainStatus.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newKeyring, newPurse, ownerOf } from '../../support/purse/purseRows.ts'
import { newProject, row } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

const stop = (projectId: string) => stopPurse(pool, keyring, ownerOf(projectId))
const resume = (projectId: string) => resumePurse(pool, ownerOf(projectId))

async function auditOf(projectId: string): Promise<string[]> {
  const { rows } = await pool.query(
    `select action || ' ' || outcome || coalesce(' ' || detail, '') as line from audit_log
     where project_id = $1 and action in ('purse.stop', 'purse.resume') order by "row"`,
    [projectId],
  )
  return rows.map(({ line }) => line)
}

async function stoppedBy(projectId: string) {
  const { rows } = await pool.query(
    'select frozen_at, frozen_by from purses where project_id = $1',
    [projectId],
  )
  return rows[0] as { frozen_at: Date | null; frozen_by: string | null }
}

/** Makes a stopped purse (wallet) with signed payments, and a signed cancellation for each of them. */
async function stoppedWith(payments: number) {
  const purse = await newPurse(pool, keyring)
  const ids: string[] = []
  for (let n = 0; n < payments; n++) {
    const wanted = await purse.wanted(1_000n)
    expect(await purse.reserve([wanted])).toEqual(['signed'])
    ids.push(wanted.id)
  }
  await stop(purse.projectId)
  // Other tests leave cancellations on the same network, so each purse (wallet) in this test has a separate network.
  const network = `network of ${purse.projectId}`
  await pool.query('update purchases set network = $2 where project_id = $1', [
    purse.projectId,
    network,
  ])
  const take = async (limit = 10) =>
    (await takeCancellations(pool, network, limit)).map(({ id }) => id)
  return { ids, take, projectId: purse.projectId }
}

describe('an owner can stop and resume a purse (wallet), and a stop cancels its open payments', () => {
  test('a stop changes nothing if a project has no purse (wallet), and the audit log records the attempt', async () => {
    const projectId = await newProject(pool)
    expect([await stop(projectId), await resume(projectId)]).toEqual([false, false])
    expect(await auditOf(projectId)).toEqual(['purse.stop not_found', 'purse.resume not_found'])
  })

  test('a stopped purse (wallet) stays stopped until the owner resumes it, and the audit log records both', async () => {
    const { projectId } = await newPurse(pool, keyring)
    expect(await stop(projectId)).toBe(true)
    expect(await stoppedBy(projectId)).toMatchObject({
      frozen_at: expect.any(Date),
      frozen_by: 'owner',
    })
    expect(await resume(projectId)).toBe(true)
    expect(await stoppedBy(projectId)).toEqual({ frozen_at: null, frozen_by: null })
    expect(await auditOf(projectId)).toEqual([
      'purse.stop ok cancels 0 open payments',
      'purse.resume ok',
    ])
  })

  test('if two people stop a purse (wallet), the service keeps the time and the person of the first stop', async () => {
    const { projectId } = await newPurse(pool, keyring)
    await stop(projectId)
    const first = await stoppedBy(projectId)
    await stopPurse(pool, keyring, { ...ownerOf(projectId), keyPrefix: 'second' })
    expect(await stoppedBy(projectId)).toEqual(first)
  })

  test('stopping a purse (wallet) signs one cancellation for each open payment, and a second stop signs none', async () => {
    const { ids, projectId } = await stoppedWith(2)
    const signatures = async () =>
      Promise.all(ids.map(async (id) => (await row(pool, 'purchases', id)).cancel_signature))
    const first = await signatures()
    expect(new Set(first).size).toBe(2)
    for (const signature of first) expect(signature).toMatch(/^0x[0-9a-f]{130}$/)
    await stop(projectId)
    expect(await signatures()).toEqual(first)
    expect(await auditOf(projectId)).toEqual([
      'purse.stop ok cancels 2 open payments',
      'purse.stop ok cancels 0 open payments',
    ])
  })
})

test('a stop counts no gas for the cancellation of a payment that has expired or is on a former chain, because no gas wallet sends it', async () => {
  await recordHead(pool, { network: 'base-sepolia', chainId: 84532, number: 1n, hash: '0x1' })
  const purse = await newPurse(pool, keyring)
  const { projectId } = purse
  const ids: string[] = []
  for (let n = 0; n < 3; n++) {
    const wanted = await purse.wanted(1_000n)
    expect(await purse.reserve([wanted])).toEqual(['signed'])
    ids.push(wanted.id)
  }
  await pool.query('update purchases set valid_before = 1 where id = $1', [ids[0]])
  await pool.query(`update purchases set network = 'base' where id = $1`, [ids[1]])
  await stop(projectId)
  const sent = await takeCancellations(pool, 'base-sepolia', 1_000)
  expect(ids.filter((id) => sent.some((one) => one.id === id))).toEqual([ids[2]!])
  const { rows } = await pool.query('select gas::int from purse_gas where project_id = $1', [
    projectId,
  ])
  expect(rows).toEqual([{ gas: 80_000 }])
  await resume(projectId)
  expect(await purse.reserve([await purse.wanted(1_000n)], 160_000)).toEqual(['signed'])
})

describe('a worker takes each signed cancellation of a payment once, and again after a pause', () => {
  const age = (id: string, seconds: number) =>
    pool.query(
      'update purchases set cancel_sent_at = clock_timestamp() - make_interval(secs => $2) where id = $1',
      [id, seconds],
    )

  test('a worker takes the cancellation of a payment once, and again after 30 and 60 seconds, until a block contains the cancellation', async () => {
    const { ids, take } = await stoppedWith(1)
    expect(await take()).toEqual(ids)
    expect(await take()).toEqual([])
    await age(ids[0]!, 29)
    expect(await take()).toEqual([])
    await age(ids[0]!, 31)
    expect(await take()).toEqual(ids)
    await age(ids[0]!, 59)
    expect(await take()).toEqual([])
    await age(ids[0]!, 61)
    await pool.query('update purchases set cancel_seen_at = now() where id = $1', ids)
    expect(await take()).toEqual([])
  })

  test('a worker takes no cancellation of a payment whose authorization has expired, because the token would refuse it', async () => {
    const { ids, take } = await stoppedWith(1)
    await pool.query(
      `update purchases set valid_before = extract(epoch from clock_timestamp())::bigint - 1 where id = $1`,
      ids,
    )
    expect(await take()).toEqual([])
  })

  test('a worker does not take a payment’s cancellation after a block contains the payment', async () => {
    const { ids, take } = await stoppedWith(1)
    await pool.query(
      `update purchases set money = 'spent', tx_hash = '0x01', block_number = 1, block_hash = '0x02' where id = $1`,
      ids,
    )
    expect(await take()).toEqual([])
  })

  test('a worker takes cancellations that were never sent before those that were sent, and only as many as it requests', async () => {
    const { ids, take } = await stoppedWith(3)
    await age(ids[0]!, 40)
    expect((await take(2)).toSorted()).toEqual([ids[1]!, ids[2]!].toSorted())
    expect(await take(2)).toEqual([ids[0]!])
  })

  test('a worker skips a cancellation that another worker has locked', async () => {
    const { ids, take } = await stoppedWith(2)
    await transaction(pool, async (db) => {
      await db.query('select from purchases where id = $1 for update', [ids[0]])
      expect(await take()).toEqual([ids[1]!])
    })
  })
})
