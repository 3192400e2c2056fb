import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import '../../support/long.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

/** Sends a request with the agent's API key, and checks that the error response has exactly the documented fields. */
async function refused(path: string, init: RequestInit = {}) {
  const response = await fetch(service.url + path, {
    ...init,
    headers: { authorization: `Bearer ${agent.key}`, ...(init.headers as Record<string, string>) },
  })
  const body = (await response.json()) as { error: string; message: string; status: number }
  expect(Object.keys(body)).toEqual(['error', 'message', 'status'])
  expect(body.status).toBe(response.status)
  expect(response.headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{24}$/)
  return {
    status: response.status,
    error: body.error,
    message: body.message,
    headers: response.headers,
  }
}

const json = { 'content-type': 'application/json' }
const send = (body: NonNullable<RequestInit['body']>, headers: Record<string, string> = json) =>
  refused('/v0/messages/send', { method: 'POST', body, headers })

test('a request for a path that does not exist gets an error response', async () => {
  for (const path of [
    '/v0',
    '/v0/nothing',
    '/v0/messages/',
    '/v0/messages/a/b/c',
    '/v1/messages',
  ]) {
    expect(await refused(path)).toMatchObject({
      status: 404,
      error: 'not_found',
      message: 'Not found',
    })
  }
})

test('a request for a known path with a wrong HTTP method gets an error response', async () => {
  const answer = await refused('/v0/messages', { method: 'DELETE' })
  expect(answer).toMatchObject({ status: 405, error: 'method_not_allowed' })
  expect(answer.headers.get('allow')).toBe('HEAD, GET')
  expect((await refused('/v0/messages/send', { method: 'PUT' })).headers.get('allow')).toBe('POST')
})

test('a request gets an error response if its JSON is malformed, missing or of the wrong shape', async () => {
  for (const body of ['{', '{"to":', 'undefined', '\ufeff{]']) {
    expect(await send(body)).toMatchObject({
      status: 400,
      error: 'bad_request',
      message: 'The body must be valid JSON',
    })
  }
  for (const body of ['', 'null', '"text"', '7']) {
    expect(await send(body)).toMatchObject({
      status: 400,
      message: 'The body must be a JSON object',
    })
  }
  expect(await send(new Uint8Array([0x7b, 0xff, 0x7d]))).toMatchObject({
    status: 400,
    message: 'The body must be UTF-8',
  })
})

test('a request body above the size limit is refused, whether its length is declared or it is sent in chunks', async () => {
  const large = JSON.stringify({ to: ['a@b.test'], subject: '', text: 'x'.repeat(2 * 1024 * 1024) })
  expect(await send(large)).toMatchObject({ status: 413, error: 'payload_too_large' })
  const stream = new ReadableStream({
    start(controller) {
      for (let n = 0; n < 40; n++) controller.enqueue(new Uint8Array(64 * 1024).fill(0x20))
      controller.close()
    },
  })
  expect(await send(stream)).toMatchObject({ status: 413, error: 'payload_too_large' })
})

test('a request body with a media type other than JSON is refused', async () => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx']) {
    expect(await send('{}', { 'content-type': type })).toMatchObject({
      status: 415,
      error: 'unsupported_media_type',
    })
  }
  const form = new FormData()
  form.set('a', 'b')
  expect(await send(form, {})).toMatchObject({ status: 415 })
})

test('a null character is refused in every string field of a request', async () => {
  const message = { to: ['a@b.test'], subject: 's', text: 't' }
  expect(await send(JSON.stringify({ ...message, text: 'a\0b' }))).toMatchObject({
    status: 400,
    message: 'text must not contain a null character',
  })
  expect(await send(JSON.stringify({ ...message, to: ['a\0@b.test'] }))).toMatchObject({
    status: 400,
    message: 'to[0] must not contain a null character',
  })
  expect(await send(JSON.stringify({ ...message, 'x\0': 1 }))).toMatchObject({ status: 400 })
  expect(await refused('/v0/messages/a%00b')).toMatchObject({ status: 400 })
  expect(await refused('/v0/messages?labels=a%00b')).toMatchObject({ status: 400 })
})

test('an unpaired UTF-16 surrogate in a request is refused, and the log contains no text of the mail', async () => {
  const message = { to: ['a@b.test'], subject: 's', text: 't' }
  for (const [name, body] of [
    ['text', '{"to":["a@b.test"],"subject":"s","text":"a\\ud800b"}'],
    ['subject', '{"to":["a@b.test"],"subject":"\\uDC00","text":"t"}'],
  ] as const) {
    expect(await send(body)).toMatchObject({
      status: 400,
      message: `${name} must be well-formed Unicode`,
    })
  }
  const whole = await fetch(`${service.url}/v0/messages/send`, {
    method: 'POST',
    headers: { ...json, authorization: `Bearer ${agent.key}` },
    body: JSON.stringify({ ...message, text: '\ud83d\ude00' }).replace('😀', '\\ud83d\\ude00'),
  })
  expect(whole.status).toBe(201)
})

test('malformed percent-encoding is refused in the path and the query of a URL', async () => {
  expect(await refused('/v0/messages/%E0%A4%A')).toMatchObject({
    status: 400,
    error: 'bad_request',
  })
  expect(await refused('/v0/messages/%ff')).toMatchObject({ status: 400 })
  expect(await refused('/v0/messages?labels=%zz')).toMatchObject({ status: 400 })
})

test('deeply nested JSON gets an error response and does not crash the service', async () => {
  expect((await send(`${'['.repeat(200_000)}${']'.repeat(200_000)}`)).status).toBe(400)
  expect((await send(`${'['.repeat(200_000)}"\\u0000"${']'.repeat(200_000)}`)).status).toBe(400)
})

test('a request without a body may have the header Content-Type: application/json', async () => {
  const response = await fetch(`${service.url}/v0/messages`, {
    headers: { ...json, authorization: `Bearer ${agent.key}` },
  })
  expect(response.status).toBe(200)
})

test('the service returns the X-Request-Id of a request if it is valid, and otherwise a new id', async () => {
  const ask = async (id: string) =>
    (await fetch(`${service.url}/healthz`, { headers: { 'x-request-id': id } })).headers.get(
      'x-request-id',
    )
  expect(await ask('trace-42:a.b')).toBe('trace-42:a.b')
  expect(await ask('x'.repeat(129))).toMatch(/^req_/)
  expect(await ask('a b')).toMatch(/^req_/)
})

test('the response to an internal error reveals only the request id', async () => {
  await using broken = await startTestService({ smtp: false, workers: false })
  const victim = await broken.newAgent()
  await broken.database.pool.query('alter table messages rename to hidden')
  const { status, body, headers } = await victim.get('/v0/messages')
  expect(status).toBe(500)
  expect(body).toEqual({
    error: 'internal_error',
    message: `Something went wrong (request ${headers.get('x-request-id')})`,
    status: 500,
  })
  expect(JSON.stringify(body)).not.toMatch(/select|relation|messages|\.ts/)
})

test.each([
  ['40P01', 'a deadlock'],
  ['40001', 'a serialization failure'],
  ['55P03', 'a lock that another transaction holds for too long'],
  ['57014', 'a statement timeout'],
])('a call gets 503 with Retry-After if PostgreSQL reports the SQLSTATE %s (%s)', async (code) => {
  await using busy = await startTestService({ smtp: false, workers: false })
  const client = await busy.newAgent()
  await busy.database.pool.query(
    `create function busy() returns trigger language plpgsql as
       $$ begin raise exception 'busy' using errcode = '${code}'; end $$;
     create trigger busy before insert on credentials for each row execute function busy()`,
  )
  const secret = { type: 'API_KEY', data: { apiKey: 'sk-1' } }
  const { status, body, headers } = await client.put('/v0/vault/one', secret)
  expect([status, body.error, headers.get('retry-after')]).toEqual([503, 'unavailable', '2'])
  await busy.database.pool.query('drop trigger busy on credentials')
  expect((await client.put('/v0/vault/one', secret)).status).toBe(200)
})

test('while the database is unreachable, API calls get 503 with Retry-After, and /readyz reports the failure', async () => {
  await using away = await startTestService({ smtp: false, workers: false, proxied: true })
  const client = await away.newAgent()
  expect((await client.get('/v0/messages')).status).toBe(200)
  await away.proxy!.cut()
  const { status, body, headers } = await client.get('/v0/messages')
  expect([status, body]).toEqual([
    503,
    { error: 'unavailable', message: 'The service is temporarily unavailable', status: 503 },
  ])
  expect(headers.get('retry-after')).toBe('2')
  const ready = await fetch(`${away.url}/readyz`)
  expect(ready.status).toBe(503)
  expect(await ready.json()).toEqual({
    status: 'unready',
    checks: { database: 'unreachable', migrations: 'unknown' },
  })
  expect((await fetch(`${away.url}/healthz`)).status).toBe(200)
  await away.proxy!.mend()
  expect((await client.get('/v0/messages')).status).toBe(200)
  expect((await fetch(`${away.url}/readyz`)).status).toBe(200)
})

test('the readiness check /readyz reports a database migration that is missing', async () => {
  await using behind = await startTestService({ smtp: false, workers: false })
  await behind.database.pool.query('delete from migrations')
  const ready = await fetch(`${behind.url}/readyz`)
  expect(ready.status).toBe(503)
  expect(await ready.json()).toMatchObject({ status: 'unready', checks: { database: 'ok' } })
})

/** Returns the head and the body of the response to a request that `fetch` would refuse or change. */
async function asked({ host = 'a.test', target = '/healthz' }): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const socket = connect(service.api.port, '127.0.0.1')
  let answer = ''
  socket
    .on('data', (chunk) => {
      answer += chunk.toString()
    })
    .on('close', () => resolve(answer))
    .on('error', reject)
  socket.write(
    `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${agent.key}\r\nConnection: close\r\n\r\n`,
  )
  return await promise
}

test('a request with a malformed Host header gets status 400, and the value of Host does not change the path', async () => {
  for (const host of [
    'a b',
    'exa[mple',
    '[::1',
    'x:port',
    'x:99999',
    'evil/v0',
    'a@b',
    'x?y',
    '%%',
  ]) {
    const answer = await asked({ host })
    expect([host, answer.split('\r\n')[0]]).toEqual([host, 'HTTP/1.1 400 Bad Request'])
  }
  for (const host of ['localhost', '127.0.0.1:3000', '[::1]:80', 'mail_1.example.com']) {
    const answer = await asked({ host })
    expect([host, answer.split('\r\n')[0]]).toEqual([host, 'HTTP/1.1 200 OK'])
  }
})

test('a request whose target contains # gets status 400, because the router would run another route than the one that was checked', async () => {
  expect(await asked({ target: '/v0/whoami' })).toStartWith('HTTP/1.1 200')
  for (const target of [
    '/v0/messages?labels=a#%00',
    '/v0/messages/%3Ca%40b%3E#%00',
    '/v0/vault?limit=1#&foo=1',
    '/v0/vault/x#/totp',
    '/v0/whoami#',
  ]) {
    const answer = await asked({ target })
    expect([target, answer.split('\r\n')[0]]).toEqual([target, 'HTTP/1.1 400 Bad Request'])
    expect(answer).toContain('The request target must not contain #')
  }
})
