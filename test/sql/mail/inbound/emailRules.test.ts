/** Tests that email rules are unique, limited in number, and applied to recipients. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  createRule,
  deleteRule,
  listRules,
  listSenderRules,
  RULES_MAX,
  RuleConflictError,
  readRules,
  TooManyRulesError,
} from '../../../../sql/mail/inbound/emailRules.ts'
import { readSendPolicies } from '../../../../sql/mail/outbound/recipientPolicy.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { addressOf } from '../../../support/mail/mailRows.ts'
import { newProject, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const block = (projectId: string, value: string, scope: 'RECEIVE' | 'SEND' | 'REPLY' = 'RECEIVE') =>
  createRule(pool, projectId, { type: 'BLOCK', scope, value })
const allow = (projectId: string, value: string) =>
  createRule(pool, projectId, { type: 'ALLOW', scope: 'RECEIVE', value })
const list = (projectId: string, limit = 10) => listRules(pool, { projectId, limit, cursor: null })
const fill = (projectId: string, count: number) =>
  pool.query(
    `insert into email_rules (id, project_id, type, scope, value)
     select $1 || n, $1, 'BLOCK', 'RECEIVE', n || '@x.example' from generate_series(1, $2::int) n`,
    [projectId, count],
  )

test('an email rule exists only once in its scope, and a contrary rule for the same address is refused', async () => {
  const [one, two] = [await newProject(pool), await newProject(pool)]
  const first = await block(one, 'a@b.example')
  expect(first.isNew).toBe(true)
  expect(await block(one, 'a@b.example')).toEqual({ ...first, isNew: false })
  expect((await block(one, 'a@b.example', 'SEND')).isNew).toBe(true)
  expect((await block(one, 'c@d.example')).isNew).toBe(true)
  expect(await allow(one, 'a@b.example').catch((error) => error)).toBeInstanceOf(RuleConflictError)
  expect((await allow(two, 'a@b.example')).isNew).toBe(true)
})

test('two concurrent additions of the same email rule make one rule', async () => {
  const projectId = await newProject(pool)
  const hold = 'select from projects where id = $1 for no key update'
  const both = await whileHeld(pool, hold, [projectId], () =>
    [1, 2].map(() => block(projectId, 'a@b.example')),
  )
  expect(both.map(({ isNew }) => isNew).toSorted()).toEqual([false, true])
})

test('the maximum number of email rules is counted separately for each project', async () => {
  const [full, neighbour] = [await newProject(pool), await newProject(pool)]
  await fill(full, RULES_MAX - 1)
  await fill(neighbour, RULES_MAX)
  expect((await block(full, 'last@b.example')).isNew).toBe(true)
  const beyond = block(full, 'beyond@b.example')
  expect(await beyond.catch((error) => error)).toBeInstanceOf(TooManyRulesError)
})

test('only the project of an email rule can list it (newest first) and delete it', async () => {
  const [owner, stranger] = [await newProject(pool), await newProject(pool)]
  const { rule: old } = await block(owner, 'a@b.example')
  const { rule } = await block(owner, 'c@d.example')
  expect(await deleteRule(pool, stranger, rule.id)).toBe(false)
  expect(await list(stranger)).toEqual([])
  expect(await list(owner, 1)).toEqual([rule])
  const cursor = { atMs: rule.createdAt.getTime(), row: rule.row }
  expect(await listRules(pool, { projectId: owner, limit: 10, cursor })).toEqual([old])
  expect(await deleteRule(pool, owner, rule.id)).toBe(true)
  expect(await list(owner)).toEqual([old])
})

test('the list of blocked senders covers only active inboxes and only rules of the scope RECEIVE', async () => {
  const [one, two, deleted] = [
    await newProject(pool),
    await newProject(pool),
    await newProject(pool),
  ]
  for (const projectId of [one, two, deleted]) await block(projectId, 'spam@b.example')
  await block(one, 'other@b.example', 'SEND')
  await allow(one, 'friend@b.example')
  await pool.query('update projects set deleted_at = now() where id = $1', [deleted])
  const inbox = await addressOf(pool, one)
  expect(await listSenderRules(pool, inbox)).toEqual([
    { inbox, type: 'BLOCK', value: 'spam@b.example' },
  ])
  const all = (await listSenderRules(pool, null)).map((blocked) => blocked.inbox)
  expect(all).toContain(await addressOf(pool, two))
  expect(all).not.toContain(await addressOf(pool, deleted))
  expect(await readRules(pool, one, ['SEND'])).toEqual([
    { type: 'BLOCK', scope: 'SEND', value: 'other@b.example' },
  ])
  expect(await readRules(pool, two, ['SEND'])).toEqual([])
})

test('if a rule of an inbox blocks a domain, the list of blocked senders also contains the rules that allow a sender of this domain', async () => {
  const [one, two] = [await newProject(pool), await newProject(pool)]
  await block(one, '*@b.example')
  await block(one, '*@d.example', 'SEND')
  for (const value of ['friend@b.example', 'friend@c.example', 'friend@d.example', '*@e.example'])
    await allow(one, value)
  await allow(two, 'friend@b.example')
  const inbox = await addressOf(pool, one)
  const listed = await listSenderRules(pool, inbox)
  expect(listed.toSorted((a, b) => (a.value < b.value ? -1 : 1))).toEqual([
    { inbox, type: 'BLOCK', value: '*@b.example' },
    { inbox, type: 'ALLOW', value: 'friend@b.example' },
  ])
  expect(await listSenderRules(pool, await addressOf(pool, two))).toEqual([])
})

test('the email rules and suppressed addresses of the sending project decide which recipients are refused', async () => {
  const [one, two] = [await newProject(pool), await newProject(pool)]
  await block(one, 'rule@x.example', 'SEND')
  await pool.query(
    `insert into suppressions (project_id, address, reason)
     values ($1, 'gone@x.example', 'bounce'), ($1, 'unasked@x.example', 'bounce')`,
    [one],
  )
  const addresses = ['Gone@x.example', 'rule@x.example', 'fine@x.example']
  const ask = (projectId: string) => ({ projectId, scope: 'SEND', addresses }) as const
  expect(
    (await readSendPolicies(pool, [ask(one), ask(two)], null)).map(({ refused }) => refused),
  ).toEqual([
    [
      { address: 'Gone@x.example', reason: 'suppressed' },
      { address: 'rule@x.example', reason: 'rule' },
    ],
    [],
  ])
})
