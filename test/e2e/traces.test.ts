/**
 * Follows a trace from its first request to its last step, in an OTLP collector that receives the spans of the real
 * processes.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import nodemailer from 'nodemailer'
import { type Receiver, startReceiver } from '../support/events/receiver.ts'
import { type Sink, startSink } from '../support/mail/sink.ts'
import { printed, type ServiceProcess, startProcess } from '../support/process/process.ts'
import { type Agent, type Client, createClient } from '../support/service.ts'
import { pay, redeemToEnd, startTestTill, type TestTill } from '../support/till/till.ts'
import { waitFor } from '../support/waitFor.ts'
import '../support/whole.ts'

type Span = {
  service: string
  name: string
  traceId: string
  spanId: string
  parentSpanId?: string
  status: { code?: number }
  attributes: { key: string; value: Record<string, unknown> }[]
}

const folder = mkdtempSync(join(tmpdir(), 'purser-traces-'))
const stack = new AsyncDisposableStack()
const spans: Span[] = []
let received = ''
let till: TestTill
let sink: Sink
let receiver: Receiver
let parts: ServiceProcess[]
let agent: Agent
let client: Client
let url: string
let smtpPort: number

beforeAll(async () => {
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const collector = stack.use(await startReceiver())
  collector.answer = ({ path, body }, response) => {
    expect(path).toBe('/v1/traces')
    received += body.toString()
    for (const { resource, scopeSpans } of JSON.parse(body.toString()).resourceSpans) {
      const service = resource.attributes.find(({ key }: any) => key === 'service.name').value
        .stringValue
      for (const scope of scopeSpans) {
        for (const span of scope.spans) spans.push({ service, ...span })
      }
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  }
  till = stack.use(await startTestTill({ worker: false }))
  sink = stack.use(await startSink())
  receiver = stack.use(await startReceiver())
  const start = async (file: string, ...args: string[]) => {
    const env = {
      DATABASE_URL: till.service.database.url,
      DATA_DIR: folder,
      MAIL_DOMAIN: 'mail.test',
      PORT: '0',
      SMTP_PORT: '0',
      RPC_URL: till.devnet.rpcUrl,
      ALLOW_PRIVATE_NETWORKS: 'true',
      SMTP_RELAY_URL: sink.url,
      LOG_LEVEL: 'debug',
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}/`,
    }
    const part = stack.use(startProcess(file, env, args))
    await printed(part, /"msg":"ready"/)
    return { part, port: Number(/"port":(\d+)/.exec(part.stdout())?.[1] ?? 0) }
  }
  const api = await start('api/main.ts')
  const smtp = await start('api/smtp/main.ts')
  const mail = await start('workers/main.ts', '--pool', 'mail')
  const rest = await start('workers/main.ts', '--pool', 'webhooks,payments')
  parts = [api.part, smtp.part, mail.part, rest.part]
  smtpPort = smtp.port
  url = `http://127.0.0.1:${api.port}`
  agent = await till.newSeller({ webhookUrl: `${receiver.url}/payments` })
  client = createClient(url, agent.key)
})
afterAll(() => stack.disposeAsync())

const ofTrace = (traceId: string) => spans.filter((span) => span.traceId === traceId)
/** Returns the path of each span of a trace, from the root span to this span. */
function pathsOf(traceId: string): string[] {
  const trace = ofTrace(traceId)
  const pathTo = (span: Span): string => {
    const parent = trace.find(({ spanId }) => spanId === span.parentSpanId)
    return parent === undefined ? span.name : `${pathTo(parent)} > ${span.name}`
  }
  return trace.map(pathTo).toSorted()
}
const waitForPath = (traceId: string, path: string) =>
  waitFor(`${path} in ${pathsOf(traceId).join(', ')}`, () => pathsOf(traceId).includes(path))
const newTrace = () => {
  const traceId = crypto.randomUUID().replaceAll('-', '')
  return { traceId, traceparent: `00-${traceId}-00f067aa0ba902b7-01` }
}

test('the trace of a sent mail has spans for the request, the job, the transfer by SMTP and the webhook', async () => {
  await client.post('/v0/webhooks', { url: `${receiver.url}/events`, events: ['message.sent'] })
  const { traceId, traceparent } = newTrace()
  const answer = await client.post(
    '/v0/messages/send',
    { to: ['bob@example.com'], subject: 'Secret subject', text: 'Secret text' },
    { traceparent },
  )
  expect(answer.status).toBe(201)
  const send = 'POST /v0/messages/send > send mail'
  await waitForPath(traceId, `${send} > SMTP send`)
  const webhook = 'POST /v0/messages/send > deliver webhook > HTTP POST'
  await waitForPath(traceId, webhook)
  const [request] = receiver.requests.filter(({ path }) => path.endsWith('/events'))
  expect(String(request!.headers.traceparent)).toInclude(traceId)
})

test('the trace of a received mail has spans for the SMTP DATA command, the parsing and the webhook', async () => {
  await client.post('/v0/webhooks', { url: `${receiver.url}/mail`, events: ['message.received'] })
  const transport = nodemailer.createTransport({
    host: '127.0.0.1',
    port: smtpPort,
    ignoreTLS: true,
  })
  await transport.sendMail({
    from: 'ada@x.test',
    to: agent.address,
    subject: 'Private subject',
    text: 'x',
  })
  const request = await waitFor('the webhook', () =>
    receiver.requests.find(({ path }) => path.endsWith('/mail')),
  )
  const traceId = String(request.headers.traceparent).slice(3, 35)
  await waitForPath(traceId, 'SMTP DATA > parse mail')
  await waitForPath(traceId, 'SMTP DATA > deliver webhook > HTTP POST')
  expect(new Set(ofTrace(traceId).map(({ service }) => service))).toEqual(
    new Set(['purser-smtp', 'purser-workers']),
  )
})

test('the trace of a payment has spans for the request, the transaction and the webhook', async () => {
  const { traceId, traceparent } = newTrace()
  const { header } = await pay()
  const post: Client['post'] = (path, body) => client.post(path, body, { traceparent })
  const { body } = await redeemToEnd({ post }, header)
  expect(body).toMatchObject({ ok: true })
  await waitForPath(traceId, 'POST /v0/payments/redeem > send transaction')
  await waitForPath(traceId, 'POST /v0/payments/redeem > deliver webhook > HTTP POST')
})

test('the check of a seller’s endpoint belongs to the same trace as the seller’s request for it', async () => {
  const { traceId, traceparent } = newTrace()
  await client.post('/v0/sellers/endpoints', {}, { traceparent })
  const answer = await fetch(`${url}/v0/sellers/endpoints`, {
    method: 'PUT',
    headers: {
      authorization: `Bearer ${agent.key}`,
      'content-type': 'application/json',
      traceparent,
    },
    body: JSON.stringify({ urlPattern: `${receiver.url}/paid`, priceUsdc: '0.01' }),
  })
  expect(answer.status).toBe(201)
  await waitForPath(traceId, 'PUT /v0/sellers/endpoints > job verify_endpoint > HTTP GET')
  const request = receiver.requests.find(({ path }) => path.endsWith('/paid'))
  expect(String(request!.headers.traceparent)).toInclude(traceId)
})

test('log lines name the request, job and trace, and no trace contains mail text, an API key or a path that names a project', async () => {
  const lines = parts.flatMap((part) =>
    part
      .stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  )
  const requests = lines.filter((line) => line.msg === 'request')
  expect(
    requests.every(({ requestId, traceId }) => requestId && /^[0-9a-f]{32}$/.test(traceId)),
  ).toBe(true)
  const parsed = lines.find((line) => line.msg === 'inbound mail ended')
  expect(parsed.jobId).toMatch(/^\d+$/)
  expect(ofTrace(parsed.traceId).length).toBeGreaterThan(1)
  for (const secret of [agent.key.slice(5), 'Secret', 'Private', 'bob@example.com', '/paid']) {
    expect([secret, received.includes(secret)]).toEqual([secret, false])
  }
})

test('a request with an invalid traceparent begins a new trace', async () => {
  const before = spans.length
  const wrong = [
    'x',
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    `ff-${'a'.repeat(32)}-00f067aa0ba902b7-01`,
    `00-${'A'.repeat(32)}-00f067aa0ba902b7-01`,
  ]
  for (const traceparent of wrong) await client.post('/v0/nothing', {}, { traceparent })
  const found = await waitFor('their spans', () => {
    const ofNothing = spans.slice(before).filter(({ name }) => name === 'POST')
    return ofNothing.length === wrong.length ? ofNothing : null
  })
  for (const span of found) {
    expect(span.parentSpanId).toBeFalsy()
    expect(span.traceId).toMatch(/^[0-9a-f]{32}$/)
  }
})
