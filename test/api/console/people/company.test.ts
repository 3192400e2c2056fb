/** Tests company sign-in (OpenID Connect) with a real identity provider. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { newCompanySignInId } from '../../../../shared/ids.ts'
import { hashSecret } from '../../../../shared/secretHash.ts'
import { answerSignIn } from '../../../../sql/account/people/companySignIns.ts'
import {
  type ConsoleClient,
  consoleClient,
  signIn,
  signInAs,
} from '../../../support/console/consoleSession.ts'
import { signInAt, startIdentityProvider } from '../../../support/identityProvider.ts'
import { freePort } from '../../../support/process/process.ts'
import { withinOneMinute } from '../../../support/rateWindow.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import { whileHeld } from '../../../support/till/tillRows.ts'

let service: TestService
let provider: Awaited<ReturnType<typeof startIdentityProvider>>
beforeAll(async () => {
  const port = await freePort()
  const baseUrl = `http://127.0.0.1:${port}`
  provider = await startIdentityProvider(baseUrl)
  service = await startTestService({
    smtp: false,
    pools: ['webhooks'],
    env: { PORT: String(port), BASE_URL: baseUrl, ...provider.env },
  })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await provider[Symbol.asyncDispose]()
})

const cookieOf = (headers: Headers) => headers.get('set-cookie')!.split(';')[0]!
const withCookies = (...cookies: string[]) => consoleClient(service.url, cookies.join('; '))

/** Connects an account at the identity provider, chosen by its login name, to a person of the console. */
async function connect(person: ConsoleClient, login: string) {
  const begun = await person.post('/company-account')
  const browser = cookieOf(begun.headers)
  const back = await signInAt(begun.body.url, login, service.url)
  const client = withCookies(person.cookie, browser)
  return await client.post('/company-account/answer', { query: back.search })
}

/** Signs in at the identity provider with the account that has the given login name. */
async function enter(login: string) {
  const begun = await withCookies().post('/company-sign-ins', {})
  const browser = cookieOf(begun.headers)
  const back = await signInAt(begun.body.url, login, service.url)
  const answer = await withCookies(browser).post('/company-sign-ins/answer', { query: back.search })
  return { answer, browser, query: back.search }
}

test('a person connects an account of the identity provider, and signs in with this account', async () => {
  const person = await signInAs(service, 'operator')
  expect((await person.get('/company-account')).body).toEqual({ issuer: null })
  expect((await connect(person, 'ada')).status).toBe(204)
  expect((await person.get('/company-account')).body).toEqual({ issuer: provider.url })
  const { answer } = await enter('ada')
  expect(answer.status).toBe(201)
  const session = withCookies(cookieOf(answer.headers))
  expect((await session.get('/session')).body.person.personId).toBe(person.personId)
  const { sessions } = (await session.get('/sessions')).body
  expect(sessions.find(({ isThis }: any) => isThis).method).toBe('company')
  expect((await person.delete('/company-account')).status).toBe(204)
  expect((await enter('ada')).answer.status).toBe(401)
})

test('if a person’s email address is the login name of an account at the identity provider, this account still does not sign the person in', async () => {
  const person = await signInAs(service, 'operator')
  const { answer } = await enter(person.email)
  expect([answer.status, answer.body.message]).toEqual([
    401,
    'Nobody here has connected this account. Sign in by mail, then connect it under Your sign-in',
  ])
})

test('an account of the identity provider can belong to only one person', async () => {
  const [one, other] = [await signInAs(service, 'operator'), await signInAs(service, 'operator')]
  expect((await connect(one, 'bo')).status).toBe(204)
  const taken = await connect(other, 'bo')
  expect([taken.status, taken.body.message]).toEqual([
    409,
    'Somebody else has connected this account',
  ])
})

test('a response of the identity provider works once, only in the browser that requested it, and only for the requested purpose (sign-in or connection)', async () => {
  const person = await signInAs(service, 'operator')
  await connect(person, 'carol')
  const begun = await withCookies().post('/company-sign-ins', {})
  const browser = cookieOf(begun.headers)
  const { search: query } = await signInAt(begun.body.url, 'carol', service.url)
  const tries: [string, ConsoleClient, string, number][] = [
    ['no browser', withCookies(), '/company-sign-ins/answer', 409],
    [
      'another browser',
      withCookies(`purser_browser=${'A'.repeat(43)}`),
      '/company-sign-ins/answer',
      409,
    ],
    ['to connect', withCookies(person.cookie, browser), '/company-account/answer', 409],
    ['its own', withCookies(browser), '/company-sign-ins/answer', 201],
    ['again', withCookies(browser), '/company-sign-ins/answer', 409],
  ]
  for (const [name, client, path, status] of tries) {
    expect([name, (await client.post(path, { query })).status]).toEqual([name, status])
  }
})

test('if a browser repeats its sign-in request after an interruption, the person is signed in once', async () => {
  const person = await signInAs(service, 'operator')
  await connect(person, 'fay')
  const begun = await withCookies().post('/company-sign-ins', {})
  const client = withCookies(cookieOf(begun.headers))
  const { search: query } = await signInAt(begun.body.url, 'fay', service.url)
  const id = new URLSearchParams(query).get('state')!
  // The service has stored the response of the identity provider, but the browser has not got the service's reply yet,
  // so the browser repeats its request.
  await answerSignIn(service.database.pool, id, query.slice(1))
  const repeat = () => client.post('/company-sign-ins/answer', { query })
  const answers = await Promise.all([repeat(), repeat(), repeat()])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409])
})

test('if a browser repeats its request to connect an account, it is told that the sign-in is over', async () => {
  const person = await signInAs(service, 'operator')
  const begun = await person.post('/company-account')
  const client = withCookies(person.cookie, cookieOf(begun.headers))
  const { search: query } = await signInAt(begun.body.url, 'gil', service.url)
  const answers = await Promise.all(
    [1, 2, 3].map(() => client.post('/company-account/answer', { query })),
  )
  const ends = answers.map(({ status, body }) => [status, body?.message])
  expect(ends.toSorted()).toEqual([
    [204, undefined],
    ...[1, 2].map(() => [409, 'This sign-in is over: begin again']),
  ])
})

test('a forged response of the identity provider is refused with a protocol error, and signs nobody in', async () => {
  for (const change of [
    (query: URLSearchParams) => query.set('code', 'wrong'),
    (query: URLSearchParams) => query.set('iss', 'https://evil.example'),
    (query: URLSearchParams) => query.delete('code'),
  ]) {
    const begun = await withCookies().post('/company-sign-ins', {})
    const browser = cookieOf(begun.headers)
    const back = await signInAt(begun.body.url, 'dan', service.url)
    change(back.searchParams)
    const { status, body } = await withCookies(browser).post('/company-sign-ins/answer', {
      query: back.search,
    })
    expect([status, body.message]).toEqual([
      400,
      expect.stringContaining('The identity provider refused: '),
    ])
  }
})

test('a forged response of the identity provider connects no account', async () => {
  const person = await signInAs(service, 'operator')
  const begun = await person.post('/company-account')
  const back = await signInAt(begun.body.url, 'eve', service.url)
  back.searchParams.set('code', 'wrong')
  const client = withCookies(person.cookie, cookieOf(begun.headers))
  const { status, body } = await client.post('/company-account/answer', { query: back.search })
  expect([status, body.message]).toEqual([
    400,
    expect.stringContaining('The identity provider refused: '),
  ])
  expect((await person.get('/company-account')).body).toEqual({ issuer: null })
})

test('a sign-in response of the identity provider whose state is unknown gets status 409, whatever characters this state contains', async () => {
  await using other = await startTestService({ smtp: false, workers: false, env: provider.env })
  const client = consoleClient(other.url, `purser_browser=${'A'.repeat(43)}`)
  for (const state of ['x', '', '%00', 'csi_%00', `csi_${'0'.repeat(24)}`, '%ED%A0%80']) {
    const query = `state=${state}&code=c`
    const { status, body } = await client.post('/company-sign-ins/answer', { query })
    expect([state, status, body.message]).toEqual([state, 409, 'This sign-in is over: begin again'])
  }
})

test('forged responses of the identity provider count against the rate limit of failed sign-ins', async () => {
  await using limited = await startTestService({
    smtp: false,
    pools: ['webhooks'],
    env: { ...provider.env, RATE_LIMIT_AUTH: '2' },
  })
  await withinOneMinute()
  const statuses: number[] = []
  for (let n = 0; n < 3; n++) {
    const begun = await consoleClient(limited.url, '').post('/company-sign-ins', {})
    const state = new URL(begun.body.url).searchParams.get('state')!
    const client = consoleClient(limited.url, cookieOf(begun.headers))
    const query = `state=${state}&code=junk`
    statuses.push((await client.post('/company-sign-ins/answer', { query })).status)
  }
  expect(statuses).toEqual([400, 400, 429])
})

test('if another request has already completed a sign-in, the service tells the browser that the sign-in is over', async () => {
  const { pool } = service.database
  const browser = 'B'.repeat(43)
  const id = newCompanySignInId()
  await pool.query(
    `insert into company_sign_ins (id, browser_hash, state, issuer, subject, expires_at)
     values ($2, $1, 'done', 'https://idp.example', 'x', now() + interval '1 minute')`,
    [hashSecret(browser), id],
  )
  const client = withCookies(`purser_browser=${browser}`)
  const [late] = await whileHeld(pool, `delete from company_sign_ins where id = $1`, [id], () => [
    client.post('/company-sign-ins/answer', { query: `state=${id}` }),
  ])
  expect([late!.status, late!.body.message]).toEqual([409, 'This sign-in is over: begin again'])
})

test('if 5,000 recent sign-ins of many networks are unfinished, a stranger cannot begin a sign-in, but a person can still connect an account', async () => {
  const person = await signInAs(service, 'operator')
  const { pool } = service.database
  // Without a reset of the rate limit, the sign-ins of the tests above would use up the limit of the test's IP address.
  await pool.query('delete from rate_windows')
  await pool.query(
    `insert into company_sign_ins (id, browser_hash, expires_at, network)
     select 'flood' || n, 'x', now() + interval '9 minutes', 'net' || n from generate_series(1, 5000) n`,
  )
  const { status, headers } = await withCookies().post('/company-sign-ins', {})
  const connecting = await person.post('/company-account')
  await pool.query(`delete from company_sign_ins where id like 'flood%'`)
  expect([status, headers.get('retry-after')]).toEqual([503, '2'])
  expect(connecting.status).toBe(200)
})

test('neither the database nor a log contains a secret that the service and the identity provider exchange at sign-in', async () => {
  const { query } = await enter('eve')
  const code = new URLSearchParams(query).get('code')!
  const { rows } = await service.database.pool.query(
    `select s::text as row from company_sign_ins s union all select j::text from graphile_worker.jobs j
     union all select a::text from audit_log a`,
  )
  const stored = JSON.stringify(rows)
  expect(stored).not.toContain(code)
  expect(stored).not.toContain(provider.secret)
})

test('if no identity provider is configured, or it is unreachable, a sign-in with it fails with an error that says so', async () => {
  await using plain = await startTestService({ smtp: false, workers: false })
  const none = await consoleClient(plain.url, '').post('/company-sign-ins', {})
  expect([none.status, none.body.message]).toEqual([404, 'OIDC_ISSUER is not set'])
  const answered = await consoleClient(plain.url, `purser_browser=${'A'.repeat(43)}`).post(
    '/company-sign-ins/answer',
    { query: 'state=%00' },
  )
  expect([answered.status, answered.body.message]).toEqual([404, 'OIDC_ISSUER is not set'])
  expect((await consoleClient(plain.url, '').get('/sign-in-ways')).body.company).toBeNull()
  await using away = await startTestService({
    smtp: false,
    pools: ['webhooks'],
    env: { OIDC_ISSUER: `http://127.0.0.1:${await freePort()}`, OIDC_CLIENT_ID: 'purser' },
  })
  const refused = await consoleClient(away.url, '').post('/company-sign-ins', {})
  expect([refused.status, refused.body.message]).toEqual([
    400,
    expect.stringContaining('The identity provider refused: '),
  ])
  expect((await (await signIn(away)).get('/session')).status).toBe(200)
})
