/**
 * Tests how mandates (the owner’s permissions to pay) are created, changed, listed and locked, and how the used amounts
 * are counted.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { deleteProject } from '../../../sql/account/projects/deleteProject.ts'
import {
  changeMandate,
  findMandate,
  giveMandate,
  listMandates,
  lockMandates,
  MANDATES_MAX,
  type Mandate,
  type MandateState,
  type MandateTerms,
  readUsed,
} from '../../../sql/purse/mandates.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newKeyring, newPurse, ownerOf, TERMS } from '../../support/purse/purseRows.ts'
import { newProject, whileHeld } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

const give = (projectId: string, terms: Partial<MandateTerms> = {}) =>
  giveMandate(pool, ownerOf(projectId), { ...TERMS, ...terms })

async function given(projectId: string, terms: Partial<MandateTerms> = {}): Promise<Mandate> {
  const mandate = await give(projectId, terms)
  if (mandate === null || mandate === 'full') throw new Error(`the mandate is ${mandate}`)
  return mandate
}

type Change = Partial<MandateTerms & { state: MandateState }>
const change = (projectId: string, id: string, changes: Change) =>
  changeMandate(pool, ownerOf(projectId), id, {
    change: (present) => ({ ...present, validFrom: null, ...changes }),
  })

const list = (projectId: string) => listMandates(pool, { projectId, cursor: null, limit: 1_000 })
const namesOf = (mandates: readonly Mandate[]) => mandates.map(({ name }) => name)
const AT = (ms: number) => new Date(Date.now() + ms)
const HOUR_MS = 3_600_000

/**
 * Holds a different value for each term of the mandate (spending limit), so that the test fails if two columns are
 * swapped.
 */
const FULL: MandateTerms = {
  name: 'Tide tables',
  task: 'tides',
  network: 'base',
  hosts: ['api.example', '*.tides.example'],
  resources: ['https://maps.example/coast'],
  payees: [`0x${'a'.repeat(40)}`],
  perPaymentAtomic: 1n,
  limits: { hour: 2n, day: 3n, month: 4n, total: 18_446_744_073_709_551_615n },
  paymentsPerMinute: 6,
  askAboveAtomic: 7n,
  risePercent: 8,
  validFrom: new Date('2026-01-05T09:00:00.001Z'),
  validUntil: new Date('2026-02-05T09:00:00.002Z'),
}
const UNUSED = { state: 'active', reservedAtomic: 0n, spentAtomic: 0n, releasedAtomic: 0n } as const

describe('a new mandate (permission to pay) is stored with the terms that the owner gave', () => {
  test('a new mandate (an agent’s spending limit) has each term that the owner gave, is active, and has no used amount', async () => {
    const projectId = await newProject(pool)
    const mandate = await given(projectId, FULL)
    expect(mandate).toMatchObject({ ...FULL, ...UNUSED, validFrom: FULL.validFrom! })
    expect(await findMandate(pool, projectId, mandate.id)).toEqual(mandate)
    expect(await list(projectId)).toEqual([mandate])
  })

  test('a new mandate stores null for each limit that the owner did not set', async () => {
    const limits = { hour: null, day: null, month: null, total: null }
    const none = { task: null, payees: null, askAboveAtomic: null, validUntil: null }
    const mandate = await given(await newProject(pool), { ...none, limits: { ...limits, day: 9n } })
    expect(mandate).toMatchObject({ ...none, limits: { ...limits, day: 9n } })
  })

  test('a new mandate (spending limit) without a start time begins now, by the database’s clock', async () => {
    const { validFrom, createdAt } = await given(await newProject(pool), { validFrom: null })
    expect(Math.abs(validFrom.getTime() - createdAt.getTime())).toBeLessThan(60_000)
  })

  test('if the project does not exist or is deleted, no mandate (spending limit) is created, and the result is null', async () => {
    const projectId = await newProject(pool)
    await deleteProject(pool, projectId, null)
    expect(await give(projectId)).toBeNull()
    expect(await give('prj_none')).toBeNull()
    expect(await list(projectId)).toEqual([])
  })

  test('a project that has the maximum number of active mandates (spending limits) gets no new mandate, and ended mandates do not count', async () => {
    const projectId = await newProject(pool)
    const { id } = await given(projectId)
    await pool.query(
      `insert into mandates (id, project_id, created_by, name, network, hosts, resources, per_payment_atomic,
         total_atomic, payments_per_minute, rise_percent, valid_from)
       select m.id || n, project_id, created_by, name, network, hosts, resources, per_payment_atomic, total_atomic,
         payments_per_minute, rise_percent, valid_from
       from mandates m, generate_series(2, $2) n where m.id = $1`,
      [id, MANDATES_MAX - 1],
    )
    const last = await given(projectId)
    expect(await give(projectId)).toBe('full')
    await change(projectId, last.id, { state: 'frozen' })
    expect(await give(projectId)).toBe('full')
    expect((await given(await newProject(pool))).state).toBe('active')
    await change(projectId, last.id, { state: 'ended' })
    expect((await given(projectId)).state).toBe('active')
  })

  test('if two mandates (spending limits) of a project are created at once, the second waits for the first, so that the project never exceeds its maximum number of mandates', async () => {
    const projectId = await newProject(pool)
    const hold = 'select from projects where id = $1 for no key update'
    const [mandate] = await whileHeld(pool, hold, [projectId], () => [give(projectId)])
    expect(mandate).toMatchObject({ state: 'active' })
  })
})

describe('a change of a mandate (spending limit) replaces its terms and keeps its used amounts', () => {
  test('a changed mandate (spending limit) has the new terms, and keeps its id, its start and its used amounts', async () => {
    const projectId = await newProject(pool)
    const { id, createdAt } = await given(projectId)
    await pool.query(
      'update mandates set reserved_atomic = 30, spent_atomic = 20, released_atomic = 10 where id = $1',
      [id],
    )
    const changed = await change(projectId, id, { ...FULL, state: 'frozen' })
    expect(changed).toMatchObject({ ...FULL, validFrom: FULL.validFrom!, id, createdAt })
    expect(changed).toMatchObject({ state: 'frozen', reservedAtomic: 30n, spentAtomic: 20n })
    expect(await findMandate(pool, projectId, id)).toEqual(changed)
    const later = await change(projectId, id, { validFrom: null, state: 'active' })
    expect(later).toMatchObject({
      validFrom: FULL.validFrom!,
      state: 'active',
      releasedAtomic: 10n,
    })
  })

  test('a change of one mandate (spending limit) does not affect the project’s other mandates', async () => {
    const projectId = await newProject(pool)
    const [one, other] = [await given(projectId), await given(projectId)]
    await change(projectId, one.id, { name: 'Changed' })
    expect(await findMandate(pool, projectId, other.id)).toEqual(other)
  })

  test('a change of an ended mandate (spending limit), an unknown mandate or another project’s mandate returns null', async () => {
    const [projectId, otherId] = [await newProject(pool), await newProject(pool)]
    const { id } = await given(projectId)
    expect(await change(otherId, id, { name: 'Taken' })).toBeNull()
    expect(await change(projectId, 'man_none', {})).toBeNull()
    expect((await change(projectId, id, { state: 'ended' }))?.state).toBe('ended')
    expect(await change(projectId, id, { state: 'active' })).toBeNull()
    expect(await findMandate(pool, projectId, id)).toMatchObject({ name: 'Test', state: 'ended' })
  })

  test('if a later step of its database transaction fails, a mandate (spending limit) stays unchanged', async () => {
    const projectId = await newProject(pool)
    const before = await given(projectId)
    const changing = changeMandate(pool, ownerOf(projectId), before.id, {
      change: (present) => ({ ...present, name: 'Changed', state: 'frozen' }),
      within: async (_db, { name, state }) => {
        throw new Error(`${name} ${state}`)
      },
    })
    await expect(changing).rejects.toThrow('Changed frozen')
    expect(await findMandate(pool, projectId, before.id)).toEqual(before)
    expect(await actionsOf(projectId)).toEqual(['mandate.give'])
  })

  test('if two changes of a mandate (spending limit) run at once, the second change sees the terms of the first', async () => {
    const projectId = await newProject(pool)
    const { id } = await given(projectId)
    const rise = () =>
      changeMandate(pool, ownerOf(projectId), id, {
        change: (present) => ({ ...present, risePercent: present.risePercent + 1 }),
      })
    const hold = 'select from mandates where id = $1 for update'
    await whileHeld(pool, hold, [id], () => [rise(), rise(), rise()])
    expect((await findMandate(pool, projectId, id))?.risePercent).toBe(TERMS.risePercent + 3)
  })

  test('a change of a mandate (spending limit) locks the project’s purse (the agent’s wallet) before the mandate', async () => {
    const { projectId } = await newPurse(pool, keyring)
    const [{ id }] = (await list(projectId)) as [Mandate]
    const hold = 'select from purses where project_id = $1 for update'
    await whileHeld(pool, hold, [projectId], () => [change(projectId, id, { name: 'Changed' })])
    expect((await findMandate(pool, projectId, id))?.name).toBe('Changed')
  })
})

const auditOf = async (projectId: string) => {
  const { rows } = await pool.query(
    `select action, subject, detail, actor, request_id, outcome from audit_log
     where project_id = $1 and action like 'mandate.%' order by row`,
    [projectId],
  )
  return rows
}
const actionsOf = async (projectId: string) =>
  (await auditOf(projectId)).map(({ action }) => action)

describe('the audit log records the creation, each change and the end of a mandate (spending limit)', () => {
  test('the audit log records the terms of a new mandate (spending limit), and the API key that created it', async () => {
    const projectId = await newProject(pool)
    const { id } = await given(projectId, { ...FULL, limits: { ...FULL.limits, hour: null } })
    expect(await auditOf(projectId)).toEqual([
      {
        action: 'mandate.give',
        subject: id,
        detail: `Tide tables: active, api.example *.tides.example https://maps.example/coast, payment 1, hour none, day 3, month 4, total ${FULL.limits.total}`,
        actor: 'owner',
        request_id: 'req_1',
        outcome: 'ok',
      },
    ])
  })

  test('the audit log records the stop of a mandate (spending limit) as a change, and the end of a mandate as an end', async () => {
    const projectId = await newProject(pool)
    const { id } = await given(projectId)
    await change(projectId, id, { state: 'frozen' })
    await change(projectId, id, { state: 'ended' })
    await change(projectId, id, { state: 'ended' })
    expect(await actionsOf(projectId)).toEqual(['mandate.give', 'mandate.change', 'mandate.end'])
  })

  test('if a mandate (spending limit) names many hosts, the audit log cuts the description of its terms after 1,000 characters', async () => {
    const projectId = await newProject(pool)
    await given(projectId, { hosts: Array(50).fill(`${'a'.repeat(60)}.example`) })
    expect((await auditOf(projectId))[0].detail).toHaveLength(1_000)
  })
})

describe('the list of a project’s mandates (spending limits) contains active, stopped and ended mandates', () => {
  test('mandates (spending limits) are listed newest first, even if several were created in the same millisecond', async () => {
    const projectId = await newProject(pool)
    for (const name of ['A', 'B', 'C', 'D']) await given(projectId, { name })
    await pool.query(
      `update mandates set created_at = '2026-01-01T00:00:00Z' where project_id = $1 and name in ('B', 'C')`,
      [projectId],
    )
    expect(namesOf(await list(projectId))).toEqual(['D', 'A', 'C', 'B'])
    const [newest, next] = await listMandates(pool, { projectId, cursor: null, limit: 2 })
    expect([newest!.name, next!.name]).toEqual(['D', 'A'])
    const after = ({ createdAt, row }: Mandate) =>
      listMandates(pool, { projectId, cursor: { atMs: createdAt.getTime(), row }, limit: 1 })
    const [third] = await after(next!)
    expect(namesOf(await after(third!))).toEqual(['B'])
  })

  test('the list of mandates (spending limits) includes ended and stopped mandates, but none of another project', async () => {
    const [projectId, otherId] = [await newProject(pool), await newProject(pool)]
    const [ended, stopped] = [await given(projectId), await given(projectId)]
    await change(projectId, ended.id, { state: 'ended' })
    await change(projectId, stopped.id, { state: 'frozen' })
    expect((await list(projectId)).map(({ state }) => state)).toEqual(['frozen', 'ended'])
    expect(await list(otherId)).toEqual([])
    expect(await findMandate(pool, otherId, ended.id)).toBeNull()
    expect(await findMandate(pool, projectId, 'man_none')).toBeNull()
  })
})

describe('a payment locks the mandates (spending limits) of its project until the service has decided whether the payment is allowed', () => {
  test('a payment locks all mandates (spending limits) that are valid now, and also stopped mandates, in the order of their creation', async () => {
    const projectId = await newProject(pool)
    await given(projectId, { name: 'from now on' })
    await given(projectId, { name: 'later', validFrom: AT(HOUR_MS) })
    await given(projectId, { name: 'over', validUntil: AT(-1) })
    await given(projectId, { name: 'until later', validUntil: AT(HOUR_MS) })
    const stopped = await given(projectId, { name: 'stopped' })
    const ended = await given(projectId, { name: 'ended' })
    await given(await newProject(pool), { name: 'of another project' })
    await change(projectId, stopped.id, { state: 'frozen' })
    await change(projectId, ended.id, { state: 'ended' })
    const locked = await lockMandates(pool, projectId)
    expect(namesOf(locked)).toEqual(['from now on', 'until later', 'stopped'])
  })

  test('a payment also locks stopped mandates (spending limits) outside of their validity period, because they still forbid payments', async () => {
    const projectId = await newProject(pool)
    for (const window of [{ validUntil: AT(-1) }, { validFrom: AT(HOUR_MS) }]) {
      const { id } = await given(projectId, { name: Object.keys(window)[0]!, ...window })
      await change(projectId, id, { state: 'frozen' })
    }
    const ended = await given(projectId)
    await change(projectId, ended.id, { state: 'frozen' })
    await change(projectId, ended.id, { state: 'ended' })
    const locked = await lockMandates(pool, projectId)
    expect(namesOf(locked)).toEqual(['validUntil', 'validFrom'])
  })

  test('mandates (spending limits) stay locked until the service has decided about a payment, so that the next payment waits', async () => {
    const projectId = await newProject(pool)
    const { id } = await given(projectId)
    const hold = 'select from mandates where id = $1 for update'
    const [locked] = await whileHeld(pool, hold, [id], () => [lockMandates(pool, projectId)])
    expect(locked).toHaveLength(1)
  })
})

/**
 * Adds an amount that a mandate (spending limit) reserved at a given time. The time is relative to the start of the
 * present hour, day or month (UTC).
 */
const reserved = (row: bigint, at: string, amount: number) =>
  pool.query(
    `insert into mandate_hours (mandate_row, hour, amount_atomic)
     select $1, ${at}, $2 from (select now() as t) n
     on conflict (mandate_row, hour) do update set amount_atomic = mandate_hours.amount_atomic + $2`,
    [row, amount],
  )

describe('the used amounts of a mandate (spending limit) are counted per hour, day and month', () => {
  test('the used amounts of a mandate (spending limit) are counted for the current hour, day and month in UTC', async () => {
    const start = (part: string) => `date_trunc('${part}', t, 'UTC')`
    const { row } = await given(await newProject(pool))
    await reserved(row, start('hour'), 1)
    await reserved(row, start('day'), 10)
    await reserved(row, start('month'), 100)
    await reserved(row, `${start('month')} - interval '1 hour'`, 1_000)
    const mandate = { row, reservedAtomic: 50n, releasedAtomic: 8n } as Mandate
    const { now, used } = await readUsed(pool, [mandate])
    // In the first hour of a day and on the first day of a month, the periods of two totals of a mandate (such as hour
    // and day) begin at the same time, so both totals contain the same payment.
    const isFirst = { hour: now.getUTCHours() === 0, day: now.getUTCDate() === 1 }
    const day = 11n + (isFirst.day ? 100n : 0n)
    const hour = isFirst.hour ? day : 1n
    expect(used).toEqual([{ hour, day, month: 111n, total: 42n, lastMinute: 0 }])
  })

  test('the used amounts are zero for a mandate (spending limit) without payments, and are returned in the order of the mandates', async () => {
    const projectId = await newProject(pool)
    const [one, other] = [await given(projectId), await given(projectId)]
    await reserved(other.row, `date_trunc('hour', t, 'UTC')`, 5)
    const none = { hour: 0n, day: 0n, month: 0n, total: 0n, lastMinute: 0 }
    const five = { ...none, hour: 5n, day: 5n, month: 5n }
    expect((await readUsed(pool, [one, other])).used).toEqual([none, five])
    expect((await readUsed(pool, [other, one])).used).toEqual([five, none])
    const { now, used } = await readUsed(pool, [])
    expect(used).toEqual([])
    expect(Math.abs(now.getTime() - Date.now())).toBeLessThan(60_000)
  })

  test('the used amounts of a mandate (spending limit) also include the number of its payments in the last minute', async () => {
    const purse = await newPurse(pool, keyring)
    await purse.reserve([await purse.wanted(1n), await purse.wanted(1n), await purse.wanted(1n)])
    const locked = await lockMandates(pool, purse.projectId)
    const lastMinute = async () => (await readUsed(pool, locked)).used[0]!.lastMinute
    expect(await lastMinute()).toBe(3)
    const age = (seconds: number) =>
      pool.query(
        `update purchase_mandates set reserved_at = clock_timestamp() - $2 * interval '1 second'
         where mandate_row = $1 and purchase_row = (select min(purchase_row) from purchase_mandates where mandate_row = $1)`,
        [locked[0]!.row, seconds],
      )
    await age(30)
    expect(await lastMinute()).toBe(3)
    await age(60)
    expect(await lastMinute()).toBe(2)
  })
})
