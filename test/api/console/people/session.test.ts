import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  createSignInLink,
  deleteStaleSessions,
  hasSignedIn,
} from '../../../../sql/account/people/consoleSessions.ts'
import { consoleClient, signIn, signInAs } from '../../../support/console/consoleSession.ts'
import { whileFailing } from '../../../support/database/failingStatements.ts'
import { withinOneMinute } from '../../../support/rateWindow.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import '../../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false, env: { RATE_LIMIT_AUTH: '60' } })
})
afterAll(() => service[Symbol.asyncDispose]())

const stranger = () => consoleClient(service.url, '')
const newToken = () => createSignInLink(service.database.pool)

test('even if a sign-in link is used by several requests at once, it signs a person in only once', async () => {
  const token = await newToken()
  expect(await hasSignedIn(service.database.pool)).toBe(false)
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => stranger().post('/sessions', { token })),
  )
  expect(answers.map(({ status }) => status).toSorted()).toEqual([
    201,
    ...Array<number>(7).fill(401),
  ])
  expect(answers.find(({ status }) => status === 401)?.body.message).toContain('used before')
  expect(await hasSignedIn(service.database.pool)).toBe(true)
})

test('if the database fails before a person is signed in, the same sign-in link can be used again', async () => {
  const token = await newToken()
  const first = await whileFailing('into audit_log', () => stranger().post('/sessions', { token }))
  expect(first.status).toBe(503)
  const { rowCount } = await service.database.pool.query('select from console_sessions')
  const second = await stranger().post('/sessions', { token })
  expect(second.status).toBe(201)
  const sessions = await service.database.pool.query('select from console_sessions')
  expect(sessions.rowCount).toBe(rowCount! + 1)
})

test('if a link preview sends a GET request, the sign-in link can still be used', async () => {
  const token = await newToken()
  for (const method of ['GET', 'HEAD']) {
    expect((await fetch(`${service.url}/console/login#${token}`, { method })).status).toBe(200)
    expect((await fetch(`${service.url}/console/login?token=${token}`, { method })).status).toBe(
      200,
    )
  }
  expect((await stranger().post('/sessions', { token })).status).toBe(201)
})

test('a sign-in link expires after fifteen minutes', async () => {
  const token = await newToken()
  await service.database.pool.query(
    "update console_links set expires_at = clock_timestamp() - interval '1 ms' where used_at is null",
  )
  expect((await stranger().post('/sessions', { token })).status).toBe(401)
})

test('the session cookie is HttpOnly and SameSite=Strict, and with https, no sibling host can replace it', async () => {
  const answer = await stranger().post('/sessions', { token: await newToken() })
  expect(answer.headers.get('set-cookie')).toMatch(
    /^purser_session=[\w-]{43}; Expires=[^;]+ GMT; Path=\/console; HttpOnly; SameSite=Strict$/,
  )
  expect(answer.headers.get('cache-control')).toBe('no-store')
  await using behindTls = await startTestService({
    smtp: false,
    workers: false,
    env: { BASE_URL: 'https://purser.example.com' },
  })
  const token = await createSignInLink(behindTls.database.pool)
  const secure = await consoleClient(behindTls.url, '').post(
    '/sessions',
    { token },
    {
      origin: 'https://purser.example.com',
    },
  )
  expect(secure.headers.get('set-cookie')).toMatch(
    /^__Host-purser_session=[\w-]{43}; .*; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
  )
  // A sibling host can set a cookie without the prefix `__Host-` for the path /console/api. Browsers send this cookie
  // before the session cookie.
  const [own = ''] = secure.headers.get('set-cookie')!.split(';')
  const secret = (await signInAs(behindTls, 'viewer')).cookie.split('=')[1]
  for (const name of ['__Secure-purser_session', 'purser_session']) {
    const foreign = `${name}=${secret}`
    const both = await consoleClient(behindTls.url, `${foreign}; ${own}`).get('/session')
    expect([name, both.body.person?.role]).toEqual([name, 'operator'])
    expect((await consoleClient(behindTls.url, foreign).get('/session')).status).toBe(401)
  }
})

test('a process of the previous release accepts only sessions and sign-in links of the first operator, because it knows no roles', async () => {
  const { pool } = service.database
  const viewer = await signInAs(service, 'viewer')
  const token = await createSignInLink(pool, viewer.personId)
  const asBefore = async (table: string, column: string, secret: string) => {
    const { rowCount } = await pool.query(
      `select from ${table} where ${column} = sha256(convert_to($1, 'UTF8'))`,
      [secret],
    )
    return rowCount
  }
  const secret = viewer.cookie.split('=')[1]!
  expect(await asBefore('console_sessions', 'secret_hash', secret)).toBe(0)
  expect(await asBefore('console_links', 'token_hash', token)).toBe(0)
  // A process of the previous release must accept the first operator's session, because both releases run at the same
  // time during an upgrade.
  const first = await signIn(service)
  expect(await asBefore('console_sessions', 'secret_hash', first.cookie.split('=')[1]!)).toBe(1)
  const started = await stranger().post('/sessions', { token })
  expect(started.status).toBe(201)
  const session = consoleClient(service.url, started.headers.get('set-cookie')!.split(';')[0]!)
  expect((await session.get('/session')).body.person.role).toBe('viewer')
})

test('the database stores the sign-in token and the session secret only as hashes', async () => {
  const token = await newToken()
  const answer = await stranger().post('/sessions', { token })
  const secret = /=([\w-]{43});/.exec(answer.headers.get('set-cookie')!)![1]!
  for (const table of ['console_links', 'console_sessions', 'audit_log']) {
    const { rows } = await service.database.pool.query(`select t::text as row from ${table} t`)
    const text = JSON.stringify(rows)
    for (const value of [token, secret]) {
      expect(text).not.toContain(value)
      expect(text).not.toContain(Buffer.from(value).toString('hex'))
    }
  }
})

test('console routes need a console session, and refuse an API key', async () => {
  const agent = await service.newAgent()
  const paths = [
    '/session',
    '/overview',
    '/jobs?state=failed',
    '/organization/keys',
    '/v0/platform/projects',
    `/projects/${agent.project.id}/v0/messages`,
    `/projects/${agent.project.id}/v0/vault`,
    `/projects/${agent.project.id}/outgoing`,
  ]
  for (const path of paths) {
    for (const key of [agent.key, service.platform.key]) {
      const answer = await stranger().get(path, { authorization: `Bearer ${key}` })
      expect([path, answer.status, answer.body.error]).toEqual([path, 401, 'unauthorized'])
    }
  }
})

test('a console session ends at sign-out, after two idle hours, or after twelve hours', async () => {
  const { pool } = service.database
  const ends: [string, (id: string) => Promise<unknown>][] = [
    [
      'idle',
      (id) =>
        pool.query(
          "update console_sessions set last_seen_at = clock_timestamp() - interval '2 hours 1 s' where id = $1",
          [id],
        ),
    ],
    [
      'old',
      (id) =>
        pool.query(
          "update console_sessions set expires_at = clock_timestamp() - interval '1 s' where id = $1",
          [id],
        ),
    ],
  ]
  for (const [name, end] of ends) {
    const operator = await signIn(service)
    const { body } = await operator.get('/session')
    await end(body.sessionId)
    expect([name, (await operator.get('/session')).status]).toEqual([name, 401])
  }
  const [one, other] = [await signIn(service), await signIn(service)]
  const out = await one.delete('/session')
  expect([out.status, out.headers.get('set-cookie')]).toEqual([
    204,
    'purser_session=; Max-Age=0; Path=/console; HttpOnly; SameSite=Strict',
  ])
  expect((await one.get('/session')).status).toBe(401)
  expect((await other.get('/session')).status).toBe(200)
  const third = await signIn(service)
  expect((await other.delete('/sessions')).status).toBe(204)
  expect((await third.get('/session')).status).toBe(401)
})

test('if the database fails at a sign-out, the session stays valid, and the audit log has no entry about its end', async () => {
  const person = await signIn(service)
  const audited = async () => {
    const { rows } = await service.database.pool.query(
      `select count(*) from audit_log where action like 'session.end%'`,
    )
    return rows[0].count
  }
  const before = await audited()
  for (const path of ['/session', '/sessions']) {
    for (const part of ['delete from console_sessions', 'into audit_log']) {
      const answer = await whileFailing(part, () => person.delete(path))
      expect([path, part, answer.status]).toEqual([path, part, 503])
      expect((await person.get('/session')).status).toBe(200)
    }
  }
  expect(await audited()).toBe(before)
})

test('an operator’s actions extend the console session, but the regular polling of the page does not', async () => {
  const { pool } = service.database
  const operator = await signIn(service)
  const { sessionId } = (await operator.get('/session')).body
  const idle = async () => {
    await pool.query(
      "update console_sessions set last_seen_at = clock_timestamp() - interval '1 hour' where id = $1",
      [sessionId],
    )
  }
  const idleMinutes = async () => {
    const { rows } = await pool.query<{ minutes: number }>(
      'select extract(epoch from clock_timestamp() - last_seen_at)::int / 60 as minutes from console_sessions where id = $1',
      [sessionId],
    )
    return rows[0]!.minutes
  }
  await idle()
  expect((await operator.get('/overview', { 'x-purser-console': 'watching' })).status).toBe(200)
  expect(await idleMinutes()).toBe(60)
  await operator.get('/overview')
  expect(await idleMinutes()).toBe(0)
})

test('the console refuses a cross-site request, with or without a cookie', async () => {
  const operator = await signIn(service)
  const foreign: Record<string, string | null>[] = [
    { 'x-purser-console': null },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ]
  for (const headers of foreign) {
    const answers = [
      await operator.post('/organization/keys', { name: 'mine' }, headers),
      await operator.delete('/sessions', headers),
      await operator.get('/organization/keys', headers),
      await stranger().post('/sessions', { token: await newToken() }, headers),
    ]
    expect([headers, ...answers.map(({ status }) => status)]).toEqual([
      headers,
      ...Array<number>(4).fill(403),
    ])
  }
  const { keys } = (await operator.get('/organization/keys')).body
  expect(keys.filter((key: any) => key.name === 'mine')).toEqual([])
})

test('wrong sign-in tokens and wrong session cookies count against the rate limit of the sender’s IP address', async () => {
  await using limited = await startTestService({
    smtp: false,
    workers: false,
    env: { RATE_LIMIT_AUTH: '3' },
  })
  await withinOneMinute()
  const guess = { token: 'A'.repeat(43) }
  const nobody = consoleClient(limited.url, `purser_session=${'B'.repeat(43)}`)
  const statuses = [
    (await nobody.post('/sessions', guess)).status,
    (await nobody.get('/session')).status,
    (await nobody.post('/sessions', guess)).status,
    (await nobody.post('/sessions', guess)).status,
  ]
  expect(statuses).toEqual([401, 401, 401, 429])
  // Wrong tokens do not block other sign-ins from their network, so a valid sign-in link from the same network still
  // works.
  const token = await createSignInLink(limited.database.pool)
  expect((await nobody.post('/sessions', { token })).status).toBe(201)
})

test('a request with a malformed sign-in token gets status 400 and an error that names the field', async () => {
  for (const token of ['', 'short', 'é'.repeat(43), 7, null]) {
    const { status, body } = await stranger().post('/sessions', { token })
    expect([token, status, body.message]).toEqual([
      token,
      400,
      'token must be the token of a sign-in link',
    ])
  }
})

test('the service deletes expired sign-in links and console sessions, but keeps a record that somebody has signed in before', async () => {
  const { pool } = service.database
  await pool.query("update console_links set expires_at = clock_timestamp() - interval '1 hour'")
  await pool.query("update console_sessions set expires_at = clock_timestamp() - interval '1 s'")
  await deleteStaleSessions(pool)
  const count = async (table: string) => (await pool.query(`select from ${table}`)).rowCount
  expect([await count('console_links'), await count('console_sessions')]).toEqual([1, 0])
  expect(await hasSignedIn(pool)).toBe(true)
})
