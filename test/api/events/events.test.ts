import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { UNCHECKED } from '../../../shared/mail/parse/authentication.ts'
import { parseMail } from '../../../shared/mail/parse/parseMail.ts'
import { indexed } from '../../../shared/mail/search/indexedMail.ts'
import {
  findInboundMail,
  type InboundMail,
  insertInboundMails,
} from '../../../sql/mail/inbound/inboundMails.ts'
import { storeParsedMails } from '../../../sql/mail/inbound/storeParsedMails.ts'
import { noBlobs } from '../../support/database/blobs.ts'
import { testWhole } from '../../support/database/extent.ts'
import { deliverRaw } from '../../support/mail/smtpTalk.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ proxied: true })
})
afterAll(() => service[Symbol.asyncDispose]())

const deliver = (agent: Agent, subject: string, from = 'ada@example.com') =>
  deliverRaw(
    service.smtp!.port,
    agent.address,
    `From: ${from}\nMessage-ID: <${subject.replace(/\W/g, '-')}@example.com>\nSubject: ${subject}\n\nText.\n`,
  )

type Told = { id: string; event: string | null; data: any }

test('a HEAD request for the events gets the headers of the stream at once, and opens no stream', async () => {
  const agent = await service.newAgent()
  const response = await fetch(`${service.url}/v0/events`, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${agent.key}` },
    signal: AbortSignal.timeout(60_000),
  })
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'text/event-stream',
  ])
})

/** Follows an event stream (server-sent events) as the EventSource of a browser does. */
async function listen(
  agent: Agent,
  { query = '', lastEventId }: { query?: string; lastEventId?: string } = {},
) {
  const abort = new AbortController()
  const response = await fetch(`${service.url}/v0/events${query}`, {
    headers: {
      authorization: `Bearer ${agent.key}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
    signal: abort.signal,
  })
  const told: Told[] = []
  const state = { ended: false, begin: '' }
  const read = async () => {
    let text = ''
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk
      for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
        const lines = new Map(
          text
            .slice(0, end)
            .split('\n')
            .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
        )
        text = text.slice(end + 2)
        if (lines.has('retry')) {
          state.begin = lines.get('id') ?? ''
        } else if (lines.has('id') || lines.has('event')) {
          told.push({
            id: lines.get('id') ?? '',
            event: lines.get('event') ?? null,
            data: JSON.parse(lines.get('data') ?? 'null'),
          })
        }
      }
    }
  }
  read()
    .catch(() => {})
    .finally(() => {
      state.ended = true
    })
  return {
    response,
    told,
    state,
    until: (count: number) => waitFor(`${count} events`, () => told.length >= count),
    [Symbol.dispose]: () => abort.abort(),
  }
}

describe('a client that is connected to the event stream of a project gets the events of this project', () => {
  test('the event stream sends the events of received and sent mail', async () => {
    const agent = await service.newAgent()
    using stream = await listen(agent)
    expect(stream.response.status).toBe(200)
    expect(stream.response.headers.get('content-type')).toBe('text/event-stream')
    expect(stream.response.headers.get('cache-control')).toBe('no-store')
    await deliver(agent, 'First')
    await stream.until(1)
    const { messageId, threadId } = (await waitForMessages(agent, 1))[0]
    expect(stream.told[0]).toEqual({
      id: expect.stringMatching(/^1-\d{13}$/),
      event: 'message.received',
      data: {
        type: 'message.received',
        createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
        data: {
          messageId,
          threadId,
          inboxId: agent.address,
          from: ['ada@example.com'],
          to: [],
          subject: 'First',
          labels: ['received', 'unread'],
        },
      },
    })
    const sent = await agent.post(`${messagePath(messageId)}/reply`, { text: 'Answer' })
    await stream.until(2)
    expect(stream.told[1]).toMatchObject({
      id: expect.stringMatching(/^2-\d{13}$/),
      event: 'message.sent',
      data: {
        data: {
          messageId: sent.body.messageId,
          threadId,
          to: ['ada@example.com'],
          subject: 'Re: First',
        },
      },
    })
  })

  test('the event stream continues after Last-Event-ID without gap or repetition', async () => {
    const agent = await service.newAgent()
    const subjects = Array.from({ length: 30 }, (_, n) => `Number ${n}`)
    const seen: Told[] = []
    const sending = Promise.all(subjects.map((subject) => deliver(agent, subject)))
    while (seen.length < subjects.length) {
      using stream = await listen(agent, { lastEventId: seen.at(-1)?.id ?? '0' })
      // The test breaks the connection again and again, each time after it has received a few events.
      await stream.until(Math.min(3, subjects.length - seen.length))
      seen.push(...stream.told)
    }
    await sending
    expect(seen.map(({ id }) => Number.parseInt(id, 10))).toEqual(subjects.map((_, n) => n + 1))
    expect(seen.map(({ data }) => data.data.subject).toSorted()).toEqual(subjects.toSorted())
  })

  test('without Last-Event-ID the event stream begins with new events', async () => {
    const agent = await service.newAgent()
    await deliver(agent, 'Past')
    await waitForMessages(agent, 1)
    using stream = await listen(agent)
    await deliver(agent, 'Coming')
    await stream.until(1)
    expect(stream.told[0]!.data.data.subject).toBe('Coming')
    // A client that disconnects before its first event continues later at the point where its stream began.
    expect(stream.state.begin).toMatch(/^1-\d{13}$/)
    using again = await listen(agent, { lastEventId: stream.state.begin })
    await again.until(1)
    expect(again.told).toEqual(stream.told)
  })

  test('the event stream sends a project only its own events, and an API key only the event types that its scopes allow', async () => {
    const [agent, other] = [await service.newAgent(), await service.newAgent()]
    const seller = await service.newAgent({ scopes: ['payments:accept'] })
    using stream = await listen(agent)
    using others = await listen(other)
    await deliver(agent, 'Mine')
    await deliver(other, 'Theirs')
    await stream.until(1)
    await others.until(1)
    expect(stream.told.map(({ data }) => data.data.subject)).toEqual(['Mine'])
    expect(others.told.map(({ data }) => data.data.subject)).toEqual(['Theirs'])
    await deliver(seller, 'Unheard')
    await waitFor('the event', async () => {
      const { rows } = await service.database.pool.query(
        'select from events where project_id = $1',
        [seller.project.id],
      )
      return rows.length === 1
    })
    using sellers = await listen(seller, { lastEventId: '0' })
    await sellers.until(1)
    // If the scopes of the API key do not allow an event, the client gets only the event id, so that the client does
    // not request the event again.
    expect(sellers.told).toEqual([{ id: expect.stringMatching(/^1-/), event: null, data: null }])
  })

  test('the event stream filters events by type; a type that the scopes do not allow gets status 403, and an unknown type gets status 400', async () => {
    const agent = await service.newAgent({ scopes: ['mail:read', 'mail:send'] })
    using stream = await listen(agent, { query: '?types=message.sent' })
    await deliver(agent, 'Not asked for')
    await waitForMessages(agent, 1)
    await agent.post('/v0/messages/send', {
      to: ['a@example.com'],
      subject: 'Asked for',
      text: 't',
    })
    await waitFor('the event', () => stream.told.some(({ event }) => event === 'message.sent'))
    expect(stream.told.map(({ event }) => event)).toEqual([null, 'message.sent'])
    for (const [query, status, message] of [
      ['types=payment.settled', 403, 'Missing required scope: payments:accept'],
      ['types=toString', 400, /^types must be among message\.received, /],
      ['types=message.eaten', 400, /^types must be among message\.received, /],
      ['types=toString', 400, /^types must be among message\.received, /],
      ['lastEventId=x', 400, 'Last-Event-ID must be the id of an event'],
    ] as const) {
      const { status: got, body } = await agent.get(`/v0/events?${query}`)
      expect([query, got]).toEqual([query, status])
      expect(body.message).toMatch(message)
    }
    expect((await service.platform.get('/v0/events')).status).toBe(403)
  })

  test('the event stream reports a gap if events that the client missed are deleted', async () => {
    const agent = await service.newAgent()
    for (const subject of ['Old 1', 'Old 2', 'Kept']) await deliver(agent, subject)
    await waitForMessages(agent, 3)
    await service.database.pool.query('delete from events where project_id = $1 and seq <= 2', [
      agent.project.id,
    ])
    using stream = await listen(agent, { lastEventId: '1' })
    await stream.until(2)
    expect(stream.told.map(({ event, id }) => [event, id])).toEqual([
      ['stream.gap', ''],
      ['message.received', expect.stringMatching(/^3-/)],
    ])
  })

  test('the event stream reports a gap if all missed events are deleted, or if the last event id is unknown', async () => {
    const agent = await service.newAgent()
    await deliver(agent, 'Expired')
    await waitForMessages(agent, 1)
    await service.database.pool.query('delete from events where project_id = $1', [
      agent.project.id,
    ])
    for (const lastEventId of ['0', '77']) {
      using stream = await listen(agent, { lastEventId })
      await stream.until(1)
      expect(stream.told[0]!.event).toBe('stream.gap')
    }
    using known = await listen(agent, { lastEventId: '1' })
    await deliver(agent, 'Next')
    await known.until(1)
    expect(known.told.map(({ event }) => event)).toEqual(['message.received'])
  })

  describe('event streams continue after the database was restored from a backup', () => {
    /**
     * Deletes the newest events of the project. The database is then in the same state as after a restore from a
     * backup.
     */
    const restore = async (agent: Agent, kept: number) => {
      const { pool } = service.database
      const id = agent.project.id
      await pool.query('delete from events where project_id = $1 and seq > $2', [id, kept])
      await pool.query('update event_streams set last_seq = $2 where project_id = $1', [id, kept])
    }
    const subjects = (told: Told[]) =>
      told.map(({ event, data }) => (event === 'stream.gap' ? event : data.data.subject))

    for (const [name, comes] of [
      ['fewer new events than were lost', ['New 1']],
      ['as many', ['New 1', 'New 2']],
      ['more', ['New 1', 'New 2', 'New 3']],
    ] as const) {
      test(`a client whose events were lost in a restore of the database gets stream.gap (missed events) and then the new events: ${name}`, async () => {
        const agent = await service.newAgent()
        let lastEventId = ''
        {
          using stream = await listen(agent, { lastEventId: '0' })
          for (const subject of ['Kept', 'Lost 1', 'Lost 2']) await deliver(agent, subject)
          await stream.until(3)
          lastEventId = stream.told[2]!.id
        }
        await restore(agent, 1)
        for (const [n, subject] of comes.entries()) {
          await deliver(agent, subject)
          await waitFor('the event', async () => (await newestSeq(agent)) === 2 + n)
        }
        using stream = await listen(agent, { lastEventId })
        await stream.until(1 + comes.length)
        expect(subjects(stream.told)).toEqual(['stream.gap', ...comes])
      })
    }

    test('if a restore of the database lost only events that a client had not read, the client continues without stream.gap', async () => {
      const agent = await service.newAgent()
      let lastEventId = ''
      {
        using stream = await listen(agent, { lastEventId: '0' })
        for (const subject of ['Kept', 'Lost']) await deliver(agent, subject)
        await stream.until(2)
        lastEventId = stream.told[0]!.id
      }
      await restore(agent, 1)
      using stream = await listen(agent, { lastEventId })
      await deliver(agent, 'New')
      await stream.until(1)
      expect(subjects(stream.told)).toEqual(['New'])
    })

    test('a client that is connected while the backup is restored receives the new events', async () => {
      const agent = await service.newAgent()
      using before = await listen(agent, { lastEventId: '0' })
      for (const subject of ['Kept', 'Lost 1', 'Lost 2']) await deliver(agent, subject)
      await before.until(3)
      await service.proxy!.cut()
      await restore(agent, 1)
      await service.proxy!.mend()
      await waitFor('the end', () => before.state.ended)
      await deliver(agent, 'New')
      const told: Told[] = []
      let lastEventId = before.told[2]!.id
      // An event stream that opens before the database listener of the service has connected again ends when the
      // listener connects. The client then connects again with its last event id.
      await waitFor('the gap and the new event', async () => {
        using stream = await listen(agent, { lastEventId })
        await waitFor(
          'the new event',
          () => stream.told.some(({ id }) => id !== '') || stream.state.ended,
        )
        told.push(...stream.told)
        lastEventId = stream.told.at(-1)?.id || stream.state.begin || lastEventId
        return told.length >= 2
      })
      expect(subjects(told)).toEqual(['stream.gap', 'New'])
    })
  })

  test('an event stream ends if the service may have missed the notification about a changed API key', async () => {
    const agent = await service.newAgent()
    using stream = await listen(agent)
    await service.proxy!.cut()
    await service.platform
      .post(`/v0/platform/projects/${agent.project.id}/rotate-key`)
      .catch(() => {})
    await service.database.pool.query(
      'update api_keys set revoked_at = now() where project_id = $1',
      [agent.project.id],
    )
    await service.proxy!.mend()
    await waitFor('the end', () => stream.state.ended)
  })

  test('the event stream ends if its API key is replaced or loses a scope, or if the project is deleted', async () => {
    for (const change of [
      (id: string) => service.platform.post(`/v0/platform/projects/${id}/rotate-key`),
      (id: string) =>
        service.platform.patch(`/v0/platform/projects/${id}`, { removeScopes: ['mail:read'] }),
      (id: string) => service.platform.delete(`/v0/platform/projects/${id}`),
    ]) {
      const agent = await service.newAgent()
      using stream = await listen(agent)
      expect((await change(agent.project.id)).status).toBeLessThan(300)
      await waitFor('the end', () => stream.state.ended)
    }
  })

  test('if the database is unreachable for a time, the event stream loses no event', async () => {
    const agent = await service.newAgent()
    using stream = await listen(agent)
    await deliver(agent, 'Before')
    await stream.until(1)
    await service.proxy!.cut()
    await deliver(agent, 'Meanwhile')
    await service.proxy!.mend()
    await waitForMessages(agent, 2)
    // A notification about a key change may be lost while the listener is disconnected, so the disconnection ends all
    // event streams. The client then connects again and continues after the last event that it got.
    const subject = await waitFor('the message', async () => {
      using again = await listen(agent, { lastEventId: '1' })
      await waitFor('news or the end', () => again.state.ended || again.told.length > 0)
      return again.told[0]?.data.data.subject
    })
    expect(subject).toBe('Meanwhile')
  })
})

describe('a client that waits for a message gets the next matching message, or an empty response after the time limit', () => {
  const wait = (agent: Agent, query: Record<string, string>) =>
    agent.get(`/v0/messages/wait?${new URLSearchParams(query)}`)
  test('a call that waits for a message returns the next matching message', async () => {
    const agent = await service.newAgent()
    await deliver(agent, 'Already there')
    await waitForMessages(agent, 1)
    const answers = [
      wait(agent, { timeout: '20' }),
      wait(agent, { timeout: '20', from: 'bob@example.org' }),
      wait(agent, { timeout: '20', subject: 'your code' }),
      wait(agent, { timeout: '20', labels: 'unread,received' }),
    ]
    await waitFor('the waiters', async () => (await listening(agent)) >= answers.length)
    await deliver(agent, 'Hello')
    await deliver(agent, 'Re: Your CODE is 4711')
    await deliver(agent, 'From Bob', 'Bob <bob@example.org>')
    const bodies = (await Promise.all(answers)).map(({ status, body }) => [status, body.subject])
    expect(bodies.slice(1, 3)).toEqual([
      [200, 'From Bob'],
      [200, 'Re: Your CODE is 4711'],
    ])
    expect(bodies.map(([status]) => status)).toEqual([200, 200, 200, 200])
    expect(bodies.map(([, subject]) => subject)).not.toContain('Already there')
  })

  test('a call that waits for a message and has the parameter after includes earlier messages and returns the oldest message first', async () => {
    const agent = await service.newAgent()
    for (const [n, subject] of ['One', 'Two', 'Three'].entries()) {
      await deliver(agent, subject)
      await waitForMessages(agent, n + 1)
    }
    const [three, two, one] = (await agent.get('/v0/messages')).body.messages
    const before = (at: string) => new Date(Date.parse(at) - 1).toISOString()
    const next = (after: string) => wait(agent, { timeout: '0', after })
    expect((await next(before(one.createdAt))).body.messageId).toBe(one.messageId)
    // A waiting call returns only messages that are newer than the parameter `after`.
    if (one.createdAt !== two.createdAt) {
      expect((await next(one.createdAt)).body.messageId).toBe(two.messageId)
    }
    expect((await next(three.createdAt)).status).toBe(204)
    const query = { timeout: '0', after: before(one.createdAt), subject: 'two' }
    expect((await wait(agent, query)).body.messageId).toBe(two.messageId)
  })

  test('a call that waits for a message gets status 204 if no message comes in time', async () => {
    const agent = await service.newAgent()
    const { status, body } = await wait(agent, { timeout: '0' })
    expect([status, body]).toEqual([204, null])
  })

  test('a call that waits for a message and has an invalid parameter gets status 400 with the name of the parameter', async () => {
    const agent = await service.newAgent()
    for (const timeout of ['61', '-1', 'soon', '1.5']) {
      const { status, body } = await wait(agent, { timeout })
      expect([timeout, status, body.message]).toEqual([
        timeout,
        400,
        'timeout must be a whole number of seconds, at most 60',
      ])
    }
    expect((await wait(await service.newAgent({ scopes: ['mail:send'] }), {})).status).toBe(403)
  })

  testWhole(
    'a thousand clients that wait for a message send no polling queries to the database, and all get the message',
    async () => {
      await using own = await startTestService({
        smtp: false,
        workers: false,
        proxied: true,
        env: { RATE_LIMIT_REQUESTS: '0' },
      })
      const agent = await own.newAgent()
      const answers = Array.from({ length: 1_000 }, () =>
        rawGet(own, agent, '/v0/messages/wait?timeout=60'),
      )
      const proxy = own.proxy!
      // Each waiting HTTP request reads its position in the event stream once and then sends no further query, so the
      // number of queries becomes stable.
      let before = -1
      await waitFor('quiet', async () => {
        const grown = proxy.bytesIn - before
        before = proxy.bytesIn
        await Bun.sleep(200)
        return grown === 0 && before > 100_000
      })
      const quietFrom = proxy.bytesIn
      await Bun.sleep(1_000)
      // The number of queries must stay small, because other parts of the process send only a few queries a second. If
      // each waiting request sent a query, the number would be far larger.
      expect(proxy.bytesIn - quietFrom).toBeLessThan(5_000)
      await storeMail(own, agent, 'From: ada@example.com\r\nSubject: For all\r\n\r\nHello\r\n')
      const texts = await Promise.all(answers)
      expect(
        texts.filter((text) => text.startsWith('HTTP/1.1 200') && text.includes('"For all"')),
      ).toHaveLength(1_000)
    },
  )
})

/** Returns the sequence number of the agent's newest event. */
async function newestSeq(agent: Agent): Promise<number> {
  const { rows } = await service.database.pool.query(
    'select last_seq::int as seq from event_streams where project_id = $1',
    [agent.project.id],
  )
  return rows[0]?.seq ?? 0
}

/** Returns how many requests of an agent the rate limit has counted. */
async function listening(agent: Agent): Promise<number> {
  const { rows } = await service.database.pool.query(
    'select used from rate_windows where subject = $1',
    [agent.project.id],
  )
  return rows[0]?.used ?? 0
}

/** Sends a request on its own connection, because Bun's fetch keeps at most 256 connections open. */
function rawGet(own: TestService, agent: Agent, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(own.api.port, '127.0.0.1', () =>
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${agent.key}\r\n\r\n`),
    )
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => {
      text += chunk
      if (text.includes('\r\n\r\n') && text.endsWith('}')) socket.end(() => resolve(text))
    })
    socket.on('error', reject)
  })
}

/** Stores a mail as the SMTP listener and the worker do. */
async function storeMail(own: TestService, agent: Agent, raw: string): Promise<void> {
  const { pool } = own.database
  await insertInboundMails(pool, [
    {
      sourceKey: crypto.randomUUID(),
      bytes: Buffer.from(raw),
      envelopeFrom: 'ada@example.com',
      inboxes: [{ address: agent.address, envelopeTo: agent.address }],
      remoteIp: '127.0.0.1',
      helo: 'x',
      receivedAt: new Date(),
    },
  ])
  const { rows } = await pool.query('select id from inbound_mails')
  const inbound = (await findInboundMail(
    pool,
    noBlobs,
    rows[0].id,
    Buffer.byteLength(raw),
  )) as InboundMail
  const parsed = indexed(await parseMail(inbound.bytes, 'mail.test'), inbound.projectId)
  await storeParsedMails(pool, [{ inbound, ...parsed, authentication: UNCHECKED }])
}
