import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startApi } from '../../../../api/http/server.ts'
import { silentLog } from '../../../support/logs.ts'
import { createClient, startTestService, type TestService } from '../../../support/service.ts'
import '../../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false, env: { DAILY_SEND_LIMIT: '20' } })
})
afterAll(() => service[Symbol.asyncDispose]())

const mail = (...to: string[]) => ({ to, subject: 's', text: 't' })
const people = (count: number) => Array.from({ length: count }, (_, n) => `a${n}@example.com`)

const used = async (projectId: string) => {
  const { rows } = await service.database.pool.query(
    `select (select used from send_quotas where project_id = $1) as used,
            (select count(*)::int from outbound_recipients r join outbound_mails o using (message_row)
             where o.project_id = $1) as recipients`,
    [projectId],
  )
  return rows[0]
}

test('each recipient counts once against the send quota, and a send request above the quota gets status 429 until the next day', async () => {
  const agent = await service.newAgent()
  const first = await agent.post('/v0/messages/send', {
    ...mail(...people(15), 'A1@example.com'),
    bcc: ['b@example.com'],
  })
  expect([first.status, await used(agent.project.id)]).toEqual([201, { used: 16, recipients: 16 }])
  const over = await agent.post('/v0/messages/send', mail(...people(5)))
  expect([over.status, over.body]).toEqual([
    429,
    {
      error: 'quota_exceeded',
      message: 'The daily limit of 20 recipients is reached',
      status: 429,
    },
  ])
  const waitS = Number(over.headers.get('retry-after'))
  const midnight = new Date(Date.now() + waitS * 1000)
  expect(Math.abs(midnight.getTime() - new Date(midnight).setUTCHours(0, 0, 0, 0))).toBeLessThan(
    2_000,
  )
  expect((await agent.post('/v0/messages/send', mail(...people(4)))).status).toBe(201)
  expect((await agent.post('/v0/messages/send', mail('x@example.com'))).status).toBe(429)
  expect(await used(agent.project.id)).toEqual({ used: 20, recipients: 20 })
  const other = await service.newAgent()
  expect((await other.post('/v0/messages/send', mail('x@example.com'))).status).toBe(201)
  // The test moves the stored send quotas to the previous day, as if a new day had begun.
  await service.database.pool.query(`update send_quotas set day = day - 1 where project_id = $1`, [
    agent.project.id,
  ])
  expect((await agent.post('/v0/messages/send', mail(...people(20)))).status).toBe(201)
  expect((await used(agent.project.id)).used).toBe(20)
})

test('the send quota is exact for concurrent sends on several processes, and one project’s sends do not reduce another project’s quota', async () => {
  const [agent, neighbour] = [await service.newAgent(), await service.newAgent()]
  const second = startApi(service.config, service.database.url, silentLog)
  try {
    const elsewhere = createClient(`http://127.0.0.1:${second.port}`, agent.key)
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        n % 20 === 0
          ? neighbour.post('/v0/messages/send', mail('n@example.com'))
          : (n % 2 === 0 ? agent : elsewhere).post('/v0/messages/send', mail('a@example.com')),
      ),
    )
    const statuses = (of: (n: number) => boolean) =>
      Object.groupBy(
        answers.filter((_, n) => of(n)),
        ({ status }) => String(status),
      )
    const own = statuses((n) => n % 20 !== 0)
    expect([Object.keys(own).toSorted(), own['201']?.length]).toEqual([['201', '429'], 20])
    expect(Object.keys(statuses((n) => n % 20 === 0))).toEqual(['201'])
    expect(await used(agent.project.id)).toEqual({ used: 20, recipients: 20 })
  } finally {
    await second.stop()
  }
})

test('send requests that are repeated or refused do not count against the send quota', async () => {
  const agent = await service.newAgent()
  const send = (key: string, ...to: string[]) =>
    agent.post('/v0/messages/send', mail(...to), { 'idempotency-key': key })
  const first = await send('k', ...people(12))
  for (let n = 0; n < 3; n++) expect((await send('k', ...people(12))).body).toEqual(first.body)
  const twins = await Promise.all(Array.from({ length: 8 }, () => send('t', ...people(8))))
  expect(new Set(twins.map(({ status }) => status))).toEqual(new Set([201]))
  expect((await used(agent.project.id)).used).toBe(20)
  expect((await send('over', 'x@example.com')).status).toBe(429)
  // A refused send call does not use up its Idempotency-Key, so the same call succeeds on the next day.
  await service.database.pool.query('update send_quotas set day = day - 1')
  await service.database.pool.query(
    `insert into suppressions (project_id, address, reason) values ($1, 'a0@example.com', 'bounce')`,
    [agent.project.id],
  )
  expect((await send('over', 'x@example.com')).status).toBe(201)
  expect((await send('some', ...people(3))).body.refused).toHaveLength(1)
  expect((await used(agent.project.id)).used).toBe(3)
})

test('if several calls with one Idempotency-Key exceed the send quota, all of them get status 429', async () => {
  const agent = await service.newAgent()
  await agent.post('/v0/messages/send', mail(...people(20)))
  const twins = await Promise.all(
    Array.from({ length: 20 }, () =>
      agent.post('/v0/messages/send', mail('b@example.com'), { 'idempotency-key': 'twin' }),
    ),
  )
  expect(twins.map(({ status }) => status)).toEqual(Array(20).fill(429))
  expect(await used(agent.project.id)).toEqual({ used: 20, recipients: 20 })
})

test('a call that exceeds the send quota does not affect concurrent calls that keep the quota', async () => {
  const agent = await service.newAgent()
  const wanted = [1, 1, 30, ...Array(10).fill(1), 30, 2]
  const answers = await Promise.all(
    wanted.map((count) => agent.post('/v0/messages/send', mail(...people(count)))),
  )
  expect(answers.map(({ status }) => status)).toEqual(
    wanted.map((count) => (count === 30 ? 429 : 201)),
  )
  expect(await used(agent.project.id)).toEqual({ used: 14, recipients: 14 })
})

test('a send quota of 0 means that sending is unlimited', async () => {
  await using open = await startTestService({
    smtp: false,
    workers: false,
    env: { DAILY_SEND_LIMIT: '0' },
  })
  const agent = await open.newAgent()
  expect((await agent.post('/v0/messages/send', mail(...people(50)))).status).toBe(201)
  const { rows } = await open.database.pool.query('select count(*)::int as n from send_quotas')
  expect(rows[0].n).toBe(0)
})
