import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { testWhole } from '../support/database/extent.ts'
import { rawMail, receive } from '../support/mail/mailRows.ts'
import { startSink } from '../support/mail/sink.ts'
import { talkSmtp } from '../support/mail/smtpTalk.ts'
import { printed, type ServiceProcess, startProcess } from '../support/process/process.ts'
import {
  createClient,
  startTestService,
  type TestService,
  waitForMessages,
} from '../support/service.ts'
import { waitFor } from '../support/waitFor.ts'
import '../support/whole.ts'

/** Starts one part of the service as a process that uses the database of a test service. */
async function startPart(
  service: TestService,
  file: string,
  env: Record<string, string> = {},
  args: string[] = [],
): Promise<{ part: ServiceProcess; port: number }> {
  const part = startProcess(
    file,
    {
      DATABASE_URL: service.database.url,
      DATA_DIR: service.config.dataDir,
      MAIL_DOMAIN: 'mail.test',
      PORT: '0',
      SMTP_PORT: '0',
      LOG_LEVEL: 'info',
      ...env,
    },
    args,
  )
  await printed(part, /"msg":"ready"/)
  return { part, port: Number(/"port":(\d+)/.exec(part.stdout())?.[1] ?? 0) }
}

/** Tells whether the port no longer accepts connections. */
const isRefused = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/healthz`).then(
    () => false,
    () => true,
  )

test('an API process that is told to stop answers the requests that have begun, and then ends', async () => {
  await using service = await startTestService({ smtp: false, workers: false })
  const agent = await service.newAgent()
  const { part, port } = await startPart(service, 'api/main.ts')
  const body = JSON.stringify({ to: ['a@example.com'], subject: 'slow', text: 'body' })
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    answer += text
  })
  socket.write(
    `POST /v0/messages/send HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${agent.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
  )
  // As soon as the rate limit has counted a request of this API key, the request is in progress, so the test waits for
  // the count.
  await waitFor('the request to be under way', async () => {
    const { rowCount } = await service.database.pool.query(
      'select from rate_windows where subject = $1',
      [agent.project.id],
    )
    return rowCount === 1
  })
  part.child.kill('SIGTERM')
  await printed(part, /draining/)
  socket.write(body.slice(10))
  await waitFor('the answer', () => answer.includes('\r\n\r\n'))
  expect(answer).toStartWith('HTTP/1.1 201')
  // The header `connection: close` makes a load balancer send the next request to another process, so a process that
  // stops must send this header.
  expect(answer.toLowerCase()).toContain('\r\nconnection: close\r\n')
  expect(await part.exited).toBe(0)
  expect((await agent.get('/v0/messages')).body.count).toBe(1)
})

test('an API process that is told to stop finishes a large response that a client still reads', async () => {
  await using service = await startTestService({ smtp: false, workers: false })
  const { pool } = service.database
  const agent = await service.newAgent()
  const { messageId } = await receive(pool, agent.project.id, rawMail({ text: 'x'.repeat(72) }))
  const bytes = 32 * 1024 * 1024
  await pool.query(`update raw_mails set bytes = convert_to(repeat('x', $1), 'UTF8')`, [bytes])
  const { part, port } = await startPart(service, 'api/main.ts')
  const socket = connect(port, '127.0.0.1')
  let received = 0
  socket.on('data', (chunk) => {
    if (received === 0) socket.pause()
    received += chunk.length
  })
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write(
    `GET /v0/messages/${encodeURIComponent(messageId)}/raw HTTP/1.1\r\nHost: x\r\n` +
      `Authorization: Bearer ${agent.key}\r\nConnection: close\r\n\r\n`,
  )
  await waitFor('the response', () => received > 0)
  part.child.kill('SIGTERM')
  await printed(part, /draining/)
  // The process now accepts no new request, although it has not finished the response to the earlier request.
  await waitFor('the end of new requests', () => isRefused(port))
  socket.resume()
  await closed
  expect(received).toBeGreaterThan(bytes)
  expect(await part.exited).toBe(0)
})

test('a worker that is told to stop finishes its running jobs, runs each job only once, and leaves no job locked', async () => {
  await using sink = await startSink()
  await using service = await startTestService({ smtp: false, workers: false })
  const agent = await service.newAgent()
  const { promise: released, resolve: release } = Promise.withResolvers<null>()
  let waiting = 0
  sink.refuseData = () => {
    waiting++
    return released
  }
  const { part } = await startPart(service, 'workers/main.ts', { SMTP_RELAY_URL: sink.url }, [
    '--concurrency',
    '2',
  ])
  for (let n = 0; n < 5; n++) {
    await agent.post('/v0/messages/send', { to: ['a@example.com'], subject: `${n}`, text: 'x' })
  }
  await waitFor('two messages on their way', () => waiting === 2)
  part.child.kill('SIGTERM')
  await printed(part, /draining/)
  release(null)
  expect(await part.exited).toBe(0)
  const { rows } = await service.database.pool.query(
    `select count(*)::int as jobs, count(locked_at)::int as locked, max(attempts) as attempts from graphile_worker.jobs`,
  )
  expect(rows[0].locked).toBe(0)
  expect(rows[0].jobs + sink.mails.length).toBe(5)
  const next = await startPart(service, 'workers/main.ts', { SMTP_RELAY_URL: sink.url })
  await waitFor('all five', () => sink.mails.length >= 5)
  next.part.child.kill('SIGTERM')
  expect(await next.part.exited).toBe(0)
  expect(sink.mails.map((mail) => mail.email.subject).toSorted()).toEqual(['0', '1', '2', '3', '4'])
})

test('an SMTP listener that is told to stop keeps an unfinished message only if it has already replied 250', async () => {
  await using service = await startTestService({ smtp: false })
  const agent = await service.newAgent()
  const { part, port } = await startPart(service, 'api/smtp/main.ts')
  await using talk = await talkSmtp(port)
  await talk.say('MAIL FROM:<a@example.com>')
  await talk.say(`RCPT TO:<${agent.address}>`)
  await talk.say('DATA')
  talk.write('Message-ID: <last@x.test>\r\n\r\nThe last')
  part.child.kill('SIGTERM')
  await printed(part, /draining/)
  const reply = await talk.send(' line.\r\n.\r\n').catch((error: Error) => error.message)
  expect(await part.exited).toBe(0)
  // The SMTP listener may have stopped before the end of the last message. The message must be in the inbox only if the
  // listener replied 250 to it.
  if (reply.startsWith('250')) {
    const [item] = await waitForMessages(agent, 1)
    expect(item.messageId).toBe('<last@x.test>')
  } else {
    expect((await agent.get('/v0/messages')).body.count).toBe(0)
  }
})

testWhole('no log line contains a key, even after errors', async () => {
  await using service = await startTestService({ smtp: false, workers: false })
  const agent = await service.newAgent()
  const { part, port } = await startPart(service, 'api/main.ts', { LOG_LEVEL: 'debug' })
  const url = `http://127.0.0.1:${port}`
  const [mine, platform] = [createClient(url, agent.key), createClient(url, service.platform.key)]
  await mine.get('/v0/messages')
  await mine.post('/v0/messages/send', '{broken')
  const { body: created } = await platform.post('/v0/platform/projects', {})
  const { body: rotated } = await platform.post(
    `/v0/platform/projects/${created.projectId}/rotate-key`,
  )
  await createClient(url, `${agent.key.slice(0, -1)}x`).get('/v0/messages')
  await service.database.pool.query('alter table messages rename to hidden')
  expect((await mine.get('/v0/messages')).status).toBe(500)
  part.child.kill('SIGTERM')
  expect(await part.exited).toBe(0)
  const log = part.stdout() + part.stderr()
  const lines = log
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines.filter((line) => line.msg === 'request').length).toBeGreaterThan(3)
  expect(
    lines.some((line) => line.msg === 'request failed' && line.err.message.includes('messages')),
  ).toBe(true)
  for (const key of [agent.key, service.platform.key, created.rawKey, rotated.rawKey]) {
    expect(log).not.toContain(key.slice(5, 69))
    expect(log).not.toContain(key.slice(20, 60))
  }
})
