/** Tests that a project has a limited number of webhooks, and that a deleted webhook cannot be found. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { EVENT_TYPES } from '../../../shared/events/events.ts'
import {
  createProjectWebhook,
  deleteProjectWebhook,
  findProjectWebhook,
  listProjectWebhooks,
  rotateProjectWebhook,
  TooManyWebhooksError,
  updateProjectWebhook,
  WEBHOOKS_MAX,
} from '../../../sql/events/webhooks.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { HOOK, KEYRING, newDelivery, newWebhook } from '../../support/events/eventRows.ts'
import { newProject, row, whileHeld } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const create = (projectId: string) =>
  createProjectWebhook(pool, KEYRING, { projectId, url: HOOK, events: ['message.sent'] })
const fill = (projectId: string, count: number) =>
  pool.query(
    `insert into project_webhooks (id, project_id, url, events, webhook_key_id, webhook_wrapped_key, webhook_ciphertext)
     select $1 || n, $1, 'http://a.example', '{message.sent}', 'k1', '', '' from generate_series(1, $2::int) n`,
    [projectId, count],
  )
const idsOf = async (
  projectId: string,
  cursor: Parameters<typeof listProjectWebhooks>[1]['cursor'] = null,
  limit = 10,
) => (await listProjectWebhooks(pool, { projectId, limit, cursor })).map(({ id }) => id)

test('a project has at most WEBHOOKS_MAX webhooks, and deleted webhooks do not count', async () => {
  const [full, neighbour] = [await newProject(pool), await newProject(pool)]
  await fill(full, WEBHOOKS_MAX - 1)
  await fill(neighbour, WEBHOOKS_MAX)
  const { webhook } = await create(full)
  expect(await create(full).catch((error) => error)).toBeInstanceOf(TooManyWebhooksError)
  await deleteProjectWebhook(pool, { projectId: full, id: webhook.id, events: EVENT_TYPES })
  expect((await create(full)).webhook.url).toBe(HOOK)
})

test('two concurrent registrations of webhooks together never exceed the limit', async () => {
  const projectId = await newProject(pool)
  await fill(projectId, WEBHOOKS_MAX - 1)
  const hold = 'select from projects where id = $1 for no key update'
  const both = await whileHeld(pool, hold, [projectId], () =>
    [1, 2].map(() => create(projectId).catch((error) => error)),
  )
  expect(both.filter((made) => made instanceof TooManyWebhooksError)).toHaveLength(1)
})

test('a webhook can be found, changed, rotated and deleted only by its project', async () => {
  const [owner, stranger] = [await newProject(pool), await newProject(pool)]
  const id = await newWebhook(pool, owner)
  const before = await row(pool, 'project_webhooks', id)
  const foreign = { projectId: stranger, id, events: EVENT_TYPES }
  expect(await findProjectWebhook(pool, foreign)).toBeNull()
  expect(await updateProjectWebhook(pool, foreign, { url: 'http://x.example' })).toBeNull()
  expect(await rotateProjectWebhook(pool, KEYRING, foreign)).toBeNull()
  expect(await deleteProjectWebhook(pool, foreign)).toBe(false)
  expect(await idsOf(stranger)).toEqual([])
  expect(await row(pool, 'project_webhooks', id)).toEqual(before)
})

test('a deleted webhook cannot be found, changed, rotated or deleted, and its pending deliveries end', async () => {
  const projectId = await newProject(pool)
  const [id, kept] = [await newWebhook(pool, projectId), await newWebhook(pool, projectId)]
  const [ended, open] = [
    await newDelivery(pool, { projectId, webhookId: id }),
    await newDelivery(pool, { projectId, webhookId: kept }),
  ]
  const target = { projectId, id, events: EVENT_TYPES }
  expect(await deleteProjectWebhook(pool, target)).toBe(true)
  expect(await findProjectWebhook(pool, target)).toBeNull()
  expect(await updateProjectWebhook(pool, target, { url: 'http://x.example' })).toBeNull()
  expect(await rotateProjectWebhook(pool, KEYRING, target)).toBeNull()
  expect(await deleteProjectWebhook(pool, target)).toBe(false)
  expect(await idsOf(projectId)).toEqual([kept])
  expect(await row(pool, 'webhook_deliveries', ended)).toMatchObject({
    status: 'aborted',
    error: 'the webhook was deleted',
  })
  expect((await row(pool, 'webhook_deliveries', open)).status).toBe('pending')
})

test('webhooks are listed newest first, in pages', async () => {
  const projectId = await newProject(pool)
  const ids = [
    await newWebhook(pool, projectId),
    await newWebhook(pool, projectId),
    await newWebhook(pool, projectId),
  ]
  const [, second] = await listProjectWebhooks(pool, { projectId, limit: 2, cursor: null })
  expect(await idsOf(projectId, null, 2)).toEqual([ids[2]!, ids[1]!])
  const cursor = { atMs: second!.createdAt.getTime(), row: second!.row }
  expect(await idsOf(projectId, cursor)).toEqual([ids[0]!])
})
