import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  deliverNamed,
  expectOnlyManagers,
  listThreads,
  newThread,
} from '../../../support/mail/mailThreads.ts'
import {
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

/** Returns the number of stored raw mails that contain the given text. */
const keptWith = async (text: string) => {
  const { rows } = await service.database.pool.query(
    'select from raw_mails where position($1::bytea in bytes) > 0',
    [Buffer.from(text)],
  )
  return rows.length
}
const rawCount = async () =>
  (await service.database.pool.query('select count(*)::int as n from raw_mails')).rows[0].n

test('the deletion of a message also deletes its stored raw mail, and the deletion of a thread’s last message deletes the thread', async () => {
  const before = await rawCount()
  const agent = await newThread(service, ['d1', 'd2'])
  const [thread] = await listThreads(agent)
  expect((await agent.delete(messagePath('<d2@example.com>'))).status).toBe(204)
  expect((await agent.get(messagePath('<d2@example.com>'))).status).toBe(404)
  expect((await agent.get(`${messagePath('<d2@example.com>')}/raw`)).status).toBe(404)
  expect((await agent.get('/v0/messages?q=d2')).body.count).toBe(0)
  const [rest] = await listThreads(agent)
  expect(rest).toMatchObject({ threadId: thread.threadId, messageCount: 1 })
  const [message] = (await agent.get('/v0/messages')).body.messages
  expect(rest.updatedAt >= message.createdAt && rest.updatedAt < thread.updatedAt).toBe(true)
  expect((await agent.delete(messagePath('<d2@example.com>'))).status).toBe(404)
  expect((await agent.delete(messagePath('<d1@example.com>'))).status).toBe(204)
  expect(await listThreads(agent)).toEqual([])
  expect(await rawCount()).toBe(before)
})

test('a deleted message that is received again is not stored again', async () => {
  const agent = await newThread(service, ['again'])
  await agent.delete(messagePath('<again@example.com>'))
  await deliverNamed(service, agent.address, 'again')
  await deliverNamed(service, agent.address, 'after')
  expect((await waitForMessages(agent, 1))[0].messageId).toBe('<after@example.com>')
  const { rows } = await service.database.pool.query(
    'select state from inbound_mails where project_id = $1 order by id',
    [agent.project.id],
  )
  expect(rows.map((row) => row.state)).toEqual(['retransmission', 'stored'])
  expect(await keptWith('Text of again.')).toBe(0)
})

test('if one of the receiving inboxes refuses a mail by a rule, the mail is stored only in the other inboxes', async () => {
  const [refusing, taking] = [await service.newAgent(), await service.newAgent()]
  await refusing.post('/v0/email-rules', {
    type: 'BLOCK',
    scope: 'RECEIVE',
    value: 'spam@example.com',
  })
  const deliverTo = (to: string[], text: string) =>
    service.deliver({
      envelope: { from: 'list@example.com', to },
      from: 'spam@example.com',
      messageId: `<${text}@example.com>`,
      text,
    })
  await deliverTo([refusing.address], 'refused')
  await deliverTo([refusing.address, taking.address], 'for-one')
  const path = messagePath('<for-one@example.com>')
  await waitFor('the inbound mails', async () => {
    const { rows } = await service.database.pool.query(
      `select from inbound_mails where project_id = any ($1) and state <> 'accepted'`,
      [[refusing.project.id, taking.project.id]],
    )
    return rows.length === 3
  })
  expect([await keptWith('refused'), await keptWith('for-one')]).toEqual([0, 1])
  expect((await refusing.get('/v0/messages')).body.count).toBe(0)
  expect((await taking.get(path)).body.text.trim()).toBe('for-one')
  expect((await taking.delete(path)).status).toBe(204)
  expect(await keptWith('for-one')).toBe(0)
})

test('if a message is deleted while the worker composes it, it is neither sent nor stored', async () => {
  const agent = await service.newAgent()
  const before = await rawCount()
  const lock = await service.database.pool.connect()
  try {
    // The worker must read the DKIM keys to compose a mail, but the API must not need them to delete a mail. Therefore
    // the test locks the table of DKIM keys.
    await lock.query('begin; lock table dkim_keys in access exclusive mode')
    const { body } = await agent.post('/v0/messages/send', {
      to: ['ada@example.com', agent.address],
      subject: 's',
      text: 't',
    })
    const openJobs = async () =>
      (
        await service.database.pool.query(
          `select locked_at from graphile_worker.jobs where task_identifier = 'send_mail'`,
        )
      ).rows
    await waitFor('its composition', async () => {
      const { rows } = await service.database.pool.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and query ilike '%dkim_keys%'
           and datname = current_database()`,
      )
      return rows.length > 0
    })
    expect((await agent.delete(messagePath(body.messageId))).status).toBe(204)
    await lock.query('commit')
    await waitFor('the end of its job', async () => (await openJobs()).length === 0)
    expect(await rawCount()).toBe(before)
    expect((await agent.get('/v0/messages')).body.count).toBe(0)
  } finally {
    await lock.query('rollback')
    lock.release()
  }
})

test('a reply to a deleted message still joins its thread', async () => {
  const agent = await newThread(service, ['p1', 'p2'])
  await agent.delete(messagePath('<p2@example.com>'))
  await deliverNamed(service, agent.address, 'p3', 'In-Reply-To: <p2@example.com>\n')
  await waitForMessages(agent, 2)
  expect(await listThreads(agent)).toHaveLength(1)
})

test('if a message is deleted from one inbox, the copy in another inbox stays', async () => {
  const [one, two] = [await service.newAgent(), await service.newAgent()]
  await service.deliver({
    from: 'ada@example.com',
    to: [one.address, two.address],
    messageId: '<both@example.com>',
    text: 'For both.',
  })
  await Promise.all([waitForMessages(one, 1), waitForMessages(two, 1)])
  const path = messagePath('<both@example.com>')
  await one.delete(path)
  expect((await two.get(path)).status).toBe(200)
  const raw = await fetch(`${service.url}${path}/raw`, {
    headers: { authorization: `Bearer ${two.key}` },
  })
  expect(await raw.text()).toContain('For both.')
})

test('a queued message is not sent if it is deleted before its transmission begins', async () => {
  await using idle = await startTestService({ smtp: false, workers: false })
  const agent = await idle.newAgent()
  const { body } = await agent.post('/v0/messages/send', {
    to: ['a@example.com'],
    subject: 's',
    text: 't',
  })
  expect((await agent.delete(messagePath(body.messageId))).status).toBe(204)
  const { rows } = await idle.database.pool.query('select from outbound_mails')
  expect(rows).toEqual([])
})

test('the deletion or labelling of a message requires mail:manage in the project of the message', async () => {
  const agent = await newThread(service, ['s1'])
  await expectOnlyManagers(service, messagePath('<s1@example.com>'))
  expect((await agent.get(messagePath('<s1@example.com>'))).status).toBe(200)
})
