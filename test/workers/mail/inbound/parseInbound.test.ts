import { expect, spyOn, test } from 'bun:test'
import type { Running } from '../../../../shared/process/service.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { createPool, type Pool } from '../../../../sql/db.ts'
import { createRule } from '../../../../sql/mail/inbound/emailRules.ts'
import { createDns } from '../../../../workers/mail/dns.ts'
import { createParseInbound } from '../../../../workers/mail/inbound/parseInbound.ts'
import type { LookUp } from '../../../../workers/mail/lookUp.ts'
import { createHeldOutcomes } from '../../../../workers/queue/heldOutcomes.ts'
import { Lanes } from '../../../../workers/queue/lanes.ts'
import { startPool } from '../../../../workers/queue/pool.ts'
import { inboundRunner } from '../../../../workers/runners/inbound.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
import { createTestDatabase } from '../../../support/database/database.ts'
import { startPostgresProxy } from '../../../support/database/postgresProxy.ts'
import { silentLog } from '../../../support/logs.ts'
import { dnsError, trustingLookUp } from '../../../support/mail/fakeLookUp.ts'
import { rawMail, takeIn } from '../../../support/mail/mailRows.ts'
import { deliverRaw } from '../../../support/mail/smtpTalk.ts'
import {
  type Agent,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { blocked, newProject } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

/** Delivers a message, sets the attempts of its parse job to seven, and starts a worker. */
async function retried(service: TestService, agent: Agent, raw: string): Promise<Running> {
  await deliverRaw(service.smtp!.port, agent.address, raw)
  const { pool, url } = service.database
  await waitFor('the inbound mail', async () => {
    const { rowCount } = await pool.query('update graphile_worker._private_jobs set attempts = 7')
    return rowCount === 1
  })
  const mailDomain = 'mail.test'
  const options = {
    mailDomain,
    mailHostname: mailDomain,
    dns: createDns(),
    lookUp: trustingLookUp,
    bounceKeys: [],
    objectStore: null,
  }
  return startPool({ ...inboundRunner(options), databaseUrl: url }, silentLog)
}

test('a valid message is parsed even after several failed attempts of its parser job', async () => {
  await using service = await startTestService({ workers: false })
  const agent = await service.newAgent()
  const worker = await retried(
    service,
    agent,
    'From: ada@example.com\nSubject: Innocent\nMessage-ID: <i@x.test>\nReferences: <r@x.test>\n\nHello.\n',
  )
  try {
    const [item] = await waitForMessages(agent, 1)
    expect(item).toMatchObject({
      messageId: '<i@x.test>',
      subject: 'Innocent',
      from: ['ada@example.com'],
      extractedText: 'Hello.',
      labels: ['received', 'unread'],
    })
  } finally {
    await worker.stop()
  }
})

/** Receives a message while the database refuses its parsed mail, and returns the stored message. */
async function refusedMail(raw: string) {
  await using service = await startTestService({ workers: false })
  const agent = await service.newAgent()
  // The constraint `no_html` makes the database refuse the message, as an unforeseen error would.
  await service.database.pool.query(
    'alter table messages add constraint no_html check (html_body is null)',
  )
  const worker = await retried(service, agent, raw)
  try {
    const [item] = await waitForMessages(agent, 1)
    return item
  } finally {
    await worker.stop()
  }
}

test('a message is stored unparsed if the database cannot store its parsed form', async () => {
  const item = await refusedMail(
    'From: ada@example.com\nSubject: Odd\nMessage-ID: <o@x.test>\nContent-Type: text/html\n\n<p>Hello.</p>\n',
  )
  expect(item).toMatchObject({ messageId: '<o@x.test>', subject: 'Odd' })
  expect(item.labels).toContain('unparseable')
  expect(item.text).toContain('<p>Hello.</p>')
})

test('a message with a forged sender address of this service is labelled as unauthenticated, even if the message is stored unparsed', async () => {
  const { labels } = await refusedMail(
    'From: boss@mail.test\nSubject: Odd\nContent-Type: text/html\n\n<p>Pay.</p>\n',
  )
  expect(labels).toEqual(expect.arrayContaining(['unparseable', 'unauthenticated']))
})

test('messages of one and two megabytes are parsed, and their text is cut after a million characters', async () => {
  await using service = await startTestService()
  const agent = await service.newAgent()
  const lines = 'Lorem ipsum dolor sit amet.\r\n'.repeat(35_000)
  const port = service.smtp!.port
  await Promise.all([
    deliverRaw(port, agent.address, `Subject: large\r\n\r\n${lines}`),
    deliverRaw(port, agent.address, `Subject: larger\r\n\r\n${lines.repeat(2)}`),
    deliverRaw(port, agent.address, 'Subject: small\r\n\r\nLorem\r\n'),
  ])
  const items = await waitForMessages(agent, 3)
  const sizes = new Map(items.map(({ subject, text }: any) => [subject, text.trim().length + 1]))
  expect(Object.fromEntries(sizes)).toEqual({
    large: 35_000 * 28,
    larger: 1_000_001,
    small: 6,
  })
  const cut = items.filter(({ labels }: any) => labels.includes('truncated'))
  expect(cut.map(({ subject }: any) => subject)).toEqual(['larger'])
})

/** Returns the parse tasks of a worker that uses the given database pool. */
const tasksOf = (pool: Pool, lookUp = trustingLookUp, slots = 200) =>
  createParseInbound(
    { pool, log: silentLog, lanes: new Lanes(1), outcomes: createHeldOutcomes(silentLog) },
    { mailDomain: 'mail.test', lookUp, blobs: noBlobs, bounceKeys: [], slots },
  )

/** Runs the parse job of one inbound mail with the given database pool. */
const run = (pool: Pool, inboundId: string, attempt = 1) =>
  tasksOf(pool).parse_inbound({ inboundId }, { attempt })

const labelsOf = async (pool: Pool, projectId: string): Promise<string[][]> => {
  const { rows } = await pool.query('select labels from messages where project_id = $1', [
    projectId,
  ])
  return rows.map(({ labels }) => labels)
}

/**
 * Returns a database pool that calls `before` ahead of each query about an inbound mail, and `after` when the query has
 * ended.
 */
const watched = (
  pool: Pool,
  { before, after }: Record<'before' | 'after', (inboundId: string) => Promise<void> | void>,
): Pool =>
  new Proxy(pool, {
    get(target, key) {
      const value = Reflect.get(target, key)
      if (key !== 'query') return typeof value === 'function' ? value.bind(target) : value
      return async (query: { name?: string; values: string[] }, values?: unknown[]) => {
        const isRead = query.name === 'find-inbound-mail'
        if (isRead) await before(query.values[0]!)
        const result = await target.query(query as never, values)
        if (isRead) await after(query.values[0]!)
        return result
      }
    },
  })

test('a fifth large message waits until four large messages are parsed or deleted, and is then stored', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const [gone, other, kept] = await Promise.all([1, 2, 3].map(() => newProject(pool)))
  const ids: string[] = []
  for (const projectId of [gone!, gone!, other!, other!, kept!]) {
    const [id] = await takeIn(pool, [projectId])
    ids.push(id!)
    await pool.query(
      `update raw_mails set bytes = bytes || convert_to(repeat('x', 2 * 1024 * 1024), 'UTF8')
       where id = (select raw_id from inbound_mails where id = $1)`,
      [id],
    )
  }
  const last = ids.at(-1)!
  const reads: string[] = []
  const answered: string[] = []
  const { promise, resolve: release } = Promise.withResolvers<void>()
  const watching = watched(pool, {
    async before(inboundId) {
      // The service reads a message in two queries, first its size and then its bytes, so the test can act between the
      // two queries.
      const hasSize = reads.includes(inboundId)
      reads.push(inboundId)
      if (hasSize && inboundId !== last) await promise
    },
    after: (inboundId) => void answered.push(inboundId),
  })
  const parse = tasksOf(watching).parse_inbound
  const first = ids.slice(0, 4).map((inboundId) => parse({ inboundId }, { attempt: 1 }))
  await waitFor('four messages to have their turn', () => reads.length === 8)
  const waiting = parse({ inboundId: last }, { attempt: 1 })
  await waitFor('the fifth to be known as large', () => answered.includes(last))
  await new Promise((resolve) => setImmediate(resolve))
  expect(reads.filter((id) => id === last)).toHaveLength(1)
  await deleteProject(pool, gone!, null)
  release()
  await Promise.all([...first, waiting])
  expect(await labelsOf(pool, kept!)).toEqual([
    ['received', 'unread', 'truncated', 'unauthenticated'],
  ])
})

test('a mail from an allowed author waits an hour for DNS answers, even if an outage delayed the first processing of the mail', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projectId = await newProject(pool)
  await createRule(pool, projectId, { type: 'ALLOW', scope: 'RECEIVE', value: 'ada@example.com' })
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000)
  const [id] = await takeIn(pool, [projectId], rawMail(), { receivedAt: hoursAgo(2) })
  const silent: LookUp = async () => {
    throw dnsError('ETIMEOUT')
  }
  const parse = tasksOf(pool, silent).parse_inbound
  const look = async (payload: object) => {
    await parse({ inboundId: id!, ...payload }, { attempt: 1 })
    const { rows } = await pool.query(
      `select i.state, (select p.payload from graphile_worker._private_jobs p
         join graphile_worker.jobs j on j.id = p.id where j.key = 'parse_inbound:' || i.id) as payload
       from inbound_mails i where i.id = $1`,
      [id],
    )
    return rows[0]
  }
  const { state, payload } = await look({})
  expect([state, payload.inboundId]).toEqual(['accepted', id])
  expect(Math.abs(Date.parse(payload.unsureSince) - Date.now())).toBeLessThan(60_000)
  const unsureSince = hoursAgo(0.9).toISOString()
  expect(await look({ unsureSince })).toEqual({
    state: 'accepted',
    payload: { inboundId: id, unsureSince },
  })
  expect(await look({ unsureSince: hoursAgo(1.1).toISOString() })).toMatchObject({
    state: 'discarded',
  })
})

test('if the parser job of an inbound mail runs a second time, the database stays unchanged', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projectId = await newProject(pool)
  const [id] = await takeIn(pool, [projectId])
  for (let n = 0; n < 2; n++) await run(pool, id!)
  expect(await labelsOf(pool, projectId)).toHaveLength(1)
})

test('if the database refuses a message, the service first tries again, and only later stores the message unparsed', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projectId = await newProject(pool)
  const [id] = await takeIn(pool, [projectId], rawMail({ headers: 'Content-Type: text/html\r\n' }))
  await pool.query('alter table messages add constraint no_html check (html_body is null)')
  await expect(run(pool, id!, 5)).rejects.toThrow('no_html')
  expect(await labelsOf(pool, projectId)).toEqual([])
  await pool.query('alter table messages drop constraint no_html')
  await run(pool, id!, 6)
  expect(await labelsOf(pool, projectId)).toEqual([['received', 'unread', 'unauthenticated']])
})

test('a message waits while the system cannot start its parser process, and is stored unparsed only after many attempts', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const [projectId, other] = [await newProject(pool), await newProject(pool)]
  const raw = rawMail({ text: 'Lorem ipsum\r\n'.repeat(2_000) })
  const [[id], [late]] = [await takeIn(pool, [projectId], raw), await takeIn(pool, [other], raw)]
  const spawn = spyOn(Bun, 'spawn').mockImplementation(() => {
    throw new Error('EAGAIN')
  })
  try {
    await expect(run(pool, id!, 5)).rejects.toThrow('EAGAIN')
    expect(await labelsOf(pool, projectId)).toEqual([])
    await run(pool, late!, 6)
  } finally {
    spawn.mockRestore()
  }
  expect(await labelsOf(pool, other)).toEqual([
    ['received', 'unread', 'unparseable', 'unauthenticated'],
  ])
  await run(pool, id!, 5)
  expect(await labelsOf(pool, projectId)).toEqual([['received', 'unread', 'unauthenticated']])
})

test('an outage of the database does not count as a refusal of the message, even after many attempts to store it', async () => {
  await using database = await createTestDatabase()
  const projectId = await newProject(database.pool)
  const [id] = await takeIn(database.pool, [projectId])
  await using proxy = await startPostgresProxy(database.url)
  const pool = createPool({ url: proxy.url, size: 2, name: 'test' })
  try {
    proxy.cutAt(1, 'before', (sent) => /insert into messages/i.test(sent))
    await expect(run(pool, id!, 7)).rejects.toThrow()
    expect(await labelsOf(database.pool, projectId)).toEqual([])
    await run(pool, id!, 8)
    expect(await labelsOf(database.pool, projectId)).toEqual([
      ['received', 'unread', 'unauthenticated'],
    ])
  } finally {
    await pool.end()
  }
})

test('while a mail of an inbox occupies the last job slot of the inbox, the next mail is queued for later', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projectId = await newProject(pool)
  const [first, second] = [
    await takeIn(pool, [projectId], rawMail({ id: 'first@example.com' })),
    await takeIn(pool, [projectId], rawMail({ id: 'second@example.com' })),
  ]
  await pool.query('delete from graphile_worker._private_jobs')
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<void>()
  const slow: LookUp = async (name, type) => {
    asked.resolve()
    await answer.promise
    return await trustingLookUp(name, type)
  }
  const parse = tasksOf(pool, slow, 2).parse_inbound
  const running = parse({ inboundId: first[0]! }, { attempt: 1 })
  await asked.promise
  await parse({ inboundId: second[0]! }, { attempt: 1 })
  const { rows } = await pool.query(
    'select task_identifier, run_at > clock_timestamp() as waits from graphile_worker.jobs',
  )
  expect(rows).toEqual([{ task_identifier: 'parse_inbound', waits: true }])
  answer.resolve()
  await running
  expect(await labelsOf(pool, projectId)).toHaveLength(1)
})

test('messages of one inbox that are parsed at the same time are stored in one transaction', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projectId = await newProject(pool)
  const ids: string[] = []
  for (let n = 0; n < 10; n++) {
    const raw = rawMail({ from: `ada@x${n}.test` })
    ids.push(...(await takeIn(pool, [projectId], raw)))
  }
  const policies = new Set<string>()
  const counting: LookUp = (name, type) => {
    // The parser looks up the DMARC policy as the last step before the message is stored, so the number of looked-up
    // policies is the number of parsed messages.
    if (name.startsWith('_dmarc.')) policies.add(name)
    return trustingLookUp(name, type)
  }
  // The test locks the inbox, so that the messages wait and no message is stored before the test unlocks it.
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query('select from projects where id = $1 for update', [projectId])
    const parse = tasksOf(pool, counting).parse_inbound
    const stored = Promise.all(ids.map((inboundId) => parse({ inboundId }, { attempt: 1 })))
    await waitFor('all to be read', () => policies.size === ids.length)
    await blocked(pool, 1)
    await client.query('commit')
    await stored
  } finally {
    client.release()
  }
  expect(await labelsOf(pool, projectId)).toHaveLength(10)
  const { rows } = await pool.query<{ transactions: number }>(
    'select count(distinct xmin::text)::int as transactions from messages where project_id = $1',
    [projectId],
  )
  // The first message is stored in a separate transaction, and the other messages share the next transaction. A message
  // whose DNS answer comes late needs one more, so the test allows a few more transactions.
  expect(rows[0]!.transactions).toBeLessThan(5)
})
