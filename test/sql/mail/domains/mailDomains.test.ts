/**
 * Tests that a mail domain is added once, is unusable before its verification, and is deleted together with its DKIM
 * keys.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { createProject, UnverifiedDomainError } from '../../../../sql/account/projects/projects.ts'
import {
  createDkimKey,
  deleteDkimKeys,
  findDkimSigners,
  listDkimKeys,
} from '../../../../sql/mail/domains/dkimKeys.ts'
import {
  addMailDomain,
  DomainInUseError,
  deleteMailDomain,
  findMailDomain,
  findVerifiedDomains,
  listMailDomains,
  recordCheck,
} from '../../../../sql/mail/domains/mailDomains.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { KEYRING } from '../../../support/events/eventRows.ts'
import { dropJobs, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const add = async (domain: string) => (await addMailDomain(pool, KEYRING, domain))!
const check = async (domain: string, token: string, more: object = {}) =>
  recordCheck(pool, {
    domain,
    token,
    checkedBefore: (await findMailDomain(pool, domain))?.checkedAt ?? null,
    status: 'verified',
    findings: {},
    wantingSince: null,
    recheckAt: new Date(Date.now() + 60_000),
    ...more,
  })
const verified = async (domain: string) => {
  const { token } = await add(domain)
  await check(domain, token)
  return token
}
const projectAt = (domain: string) =>
  createProject(pool, {
    name: 'Agent',
    purpose: 'BUYER',
    emailAddress: `agent@${domain}`,
    emailDomain: domain,
    scopes: [],
  })
const selectors = async (domain: string) =>
  (await listDkimKeys(pool, domain)).map(({ selector }) => selector)
const jobsOf = async (domain: string) =>
  (await pool.query('select from graphile_worker.jobs where key = $1', [`verify_domain:${domain}`]))
    .rowCount

test('a mail domain is added only once, and a second attempt to add it leaves no DKIM key behind', async () => {
  const { dkimSelector } = await add('once.example')
  expect(await addMailDomain(pool, KEYRING, 'once.example')).toBeNull()
  expect(await selectors('once.example')).toEqual([dkimSelector])
})

test('a mail domain cannot be used before it is verified', async () => {
  await add('pending.example')
  const error = await projectAt('pending.example').catch((thrown) => thrown)
  expect(error).toBeInstanceOf(UnverifiedDomainError)
  await verified('ours.example')
  await verified('unasked.example')
  const asked = ['pending.example', 'ours.example', 'none.example']
  expect(await findVerifiedDomains(pool, asked)).toEqual(['ours.example'])
})

test('the result of a DNS check is ignored if the domain was added again meanwhile; any other result queues the next check', async () => {
  const { token } = await add('check.example')
  await dropJobs(pool)
  expect(await check('check.example', 'another')).toBe(false)
  expect((await findMailDomain(pool, 'check.example'))?.status).toBe('pending')
  expect(await jobsOf('check.example')).toBe(0)
  expect(await check('check.example', token, { recheckAt: null })).toBe(true)
  expect(await jobsOf('check.example')).toBe(0)
  const { verifiedAt } = (await findMailDomain(pool, 'check.example'))!
  expect(await check('check.example', token, { status: 'failed' })).toBe(true)
  expect(await jobsOf('check.example')).toBe(1)
  expect(await check('check.example', token)).toBe(true)
  expect((await findMailDomain(pool, 'check.example'))?.verifiedAt).toEqual(verifiedAt)
})

test('a mail domain without active projects is deleted together with its DKIM keys', async () => {
  await verified('used.example')
  await verified('kept.example')
  const { project } = await projectAt('used.example')
  const error = await deleteMailDomain(pool, 'used.example').catch((thrown) => thrown)
  expect(error).toBeInstanceOf(DomainInUseError)
  expect(await selectors('used.example')).toHaveLength(1)
  await deleteProject(pool, project.id, null)
  expect(await deleteMailDomain(pool, 'used.example')).toBe(true)
  expect(await deleteMailDomain(pool, 'used.example')).toBe(false)
  expect(await selectors('used.example')).toEqual([])
  expect(await selectors('kept.example')).toHaveLength(1)
})

test('a mail domain cannot be deleted while a project with this domain is created, and no project gets a domain that is being deleted', async () => {
  await verified('race.example')
  const make = `with held as (select from mail_domains where domain = 'race.example' for key share)
                insert into projects (id, name, purpose, email_address)
                select 'prj_race', 'Agent', 'BUYER', 'race@race.example' from held`
  const [error] = await whileHeld(pool, make, [], () => [
    deleteMailDomain(pool, 'race.example').catch((thrown) => thrown),
  ])
  expect(error).toBeInstanceOf(DomainInUseError)
  await verified('going.example')
  const [late] = await whileHeld(
    pool,
    `delete from mail_domains where domain = 'going.example'`,
    [],
    () => [projectAt('going.example').catch((thrown) => thrown)],
  )
  expect(late).toBeInstanceOf(UnverifiedDomainError)
})

test('mail domains are listed newest first, in pages', async () => {
  for (const domain of ['l1.example', 'l2.example', 'l3.example']) await add(domain)
  const first = await listMailDomains(pool, { limit: 2, cursor: null })
  expect(first.map(({ domain }) => domain)).toEqual(['l3.example', 'l2.example'])
  const cursor = { atMs: first[1]!.createdAt.getTime(), row: first[1]!.row }
  const [next] = await listMailDomains(pool, { limit: 1, cursor })
  expect(next?.domain).toBe('l1.example')
})

test('a mail domain signs with its two newest DKIM keys, and DKIM keys can be deleted singly or all together', async () => {
  const made: string[] = []
  for (let n = 0; n < 3; n++)
    made.push((await createDkimKey(pool, KEYRING, 'sign.example')).selector)
  await createDkimKey(pool, KEYRING, 'other.example')
  const newest = [made[2]!, made[1]!]
  const signers = await findDkimSigners(pool, async () => KEYRING, 'sign.example')
  expect(signers.map(({ selector }) => selector)).toEqual(newest)
  expect(await selectors('sign.example')).toEqual(newest)
  await deleteDkimKeys(pool, 'sign.example', made[2]!)
  expect(await selectors('sign.example')).toEqual([made[1]!, made[0]!])
  await deleteDkimKeys(pool, 'sign.example')
  expect(await selectors('sign.example')).toEqual([])
  expect(await selectors('other.example')).toHaveLength(1)
})

test('if two checks of a mail domain overlap, the second result is not recorded, and a new check is queued', async () => {
  const { token } = await add('overlap.example')
  await dropJobs(pool)
  expect(await check('overlap.example', token, { recheckAt: null })).toBe(true)
  expect(await jobsOf('overlap.example')).toBe(0)
  const late = { status: 'failed', recheckAt: null, checkedBefore: null }
  expect(await check('overlap.example', token, late)).toBe(false)
  expect((await findMailDomain(pool, 'overlap.example'))?.status).toBe('verified')
  expect(await jobsOf('overlap.example')).toBe(1)
})
