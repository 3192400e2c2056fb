import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  actorOf,
  organizationActor,
  refuseOtherSites,
  sessionCookie,
  sessionOf,
} from '../../../api/console/access.ts'
import { ApiError } from '../../../api/http/errors.ts'
import { attachState, newRequestState } from '../../../api/http/requestState.ts'
import type { ConsoleSession } from '../../../sql/account/people/consoleSessions.ts'
import { consoleClient, signIn } from '../../support/console/consoleSession.ts'
import { startTestService, type TestService } from '../../support/service.ts'

const BASE = 'https://purser.example'
const UNAUTHORIZED = 'Sign in to the console: a session ends after 2 hours without use'

type Asked = { method?: string; framed?: boolean; headers?: Record<string, string> }

/**
 * Tells whether the console accepts a request. The given `headers` replace the headers that the page of the console
 * sends.
 */
function accepts({
  method = 'POST',
  framed = false,
  headers = { 'x-purser-console': '1' },
}: Asked) {
  const request = new Request(`${BASE}/console/api/x`, { method, headers })
  try {
    refuseOtherSites(request, BASE, framed)
    return true
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { status, code, message } = error
    expect([status, code, message]).toEqual([
      403,
      'forbidden',
      'Only the page of the console may ask for this',
    ])
    return false
  }
}
const acceptsHeaders = (headers: Record<string, string>) =>
  accepts({ headers: { 'x-purser-console': '1', host: 'purser.example', ...headers } })

describe('the console accepts a request only from its own page, and refuses a request that another site causes', () => {
  test('a request to the console API must have the header X-Purser-Console, with any value', () => {
    expect(accepts({})).toBe(true)
    expect(accepts({ headers: { 'x-purser-console': '' } })).toBe(true)
    expect(accepts({ headers: {} })).toBe(false)
    expect(accepts({ method: 'GET', headers: {} })).toBe(false)
  })

  test('a console request with the header Sec-Fetch-Site is accepted only if the value is same-origin', () => {
    expect(acceptsHeaders({ 'sec-fetch-site': 'same-origin' })).toBe(true)
    for (const site of ['same-site', 'cross-site', 'none', '', 'Same-Origin']) {
      expect([site, acceptsHeaders({ 'sec-fetch-site': site })]).toEqual([site, false])
    }
  })

  test('the Origin header of a console request may name the origin of the service or the host of the request', () => {
    for (const headers of [
      { origin: BASE },
      { origin: BASE, host: '10.0.0.7:3000' },
      { origin: 'http://10.0.0.7:3000', host: '10.0.0.7:3000' },
    ]) {
      expect([headers, acceptsHeaders(headers)]).toEqual([headers, true])
    }
  })

  test('a console request is refused with the origin of another host, port or scheme, and with an unreadable origin', () => {
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'https://console.purser.example' },
      { origin: `${BASE}.evil.example` },
      { origin: `${BASE}:444` },
      { origin: 'http://10.0.0.7:3001', host: '10.0.0.7:3000' },
      { origin: 'http://purser.example', host: '10.0.0.7:3000' },
      { origin: 'null' },
      { origin: '' },
    ]) {
      expect([headers, acceptsHeaders(headers)]).toEqual([headers, false])
    }
  })

  test('a request that only reads the HTML of a mail needs no console header, because a browser frame sends it', () => {
    for (const [method, isAccepted] of [
      ['GET', true],
      ['HEAD', true],
      ['POST', false],
      ['DELETE', false],
    ] as const) {
      const asked = { method, framed: true, headers: {} }
      expect([method, accepts(asked)]).toEqual([method, isAccepted])
    }
    const foreign = { 'sec-fetch-site': 'cross-site' }
    expect(accepts({ method: 'GET', framed: true, headers: foreign })).toBe(false)
  })
})

const SECRET = 'S'.repeat(43)

test('the cookie of a console session lasts until the end of the session, and is Secure only with https', () => {
  const expiresAt = new Date('2026-03-01T12:00:00.900Z')
  const until = 'Expires=Sun, 01 Mar 2026 12:00:00 GMT'
  expect(sessionCookie('http://purser.example', SECRET, expiresAt)).toBe(
    `purser_session=${SECRET}; ${until}; Path=/console; HttpOnly; SameSite=Strict`,
  )
  expect(sessionCookie(BASE, SECRET, expiresAt)).toBe(
    `__Host-purser_session=${SECRET}; ${until}; Path=/; HttpOnly; SameSite=Strict; Secure`,
  )
})

test('if there is no session secret, the Set-Cookie header tells the browser to delete the session cookie at once', () => {
  expect(sessionCookie(BASE, null)).toBe(
    '__Host-purser_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict; Secure',
  )
})

const sessionOfPerson = (email: string | null): ConsoleSession => ({
  id: 'ses_1',
  person: { id: 'per_1', email, name: 'Ada', role: 'operator', projectIds: [] },
  createdAt: new Date(),
  expiresAt: new Date(),
})

test('the audit log names a person at the console by the email address, or by the id if the person has no address', () => {
  expect(actorOf(sessionOfPerson('ada@people.example'))).toBe('console:ada@people.example')
  expect(actorOf(sessionOfPerson(null))).toBe('console:per_1')
})

function requestWith(session: ConsoleSession | null): Request {
  const request = new Request(`${BASE}/console/api/x`)
  attachState(request, { ...newRequestState('req_1'), session })
  return request
}

test('the audit log records an action for the whole organization with the person and the request id, but without a project', () => {
  const mine = sessionOfPerson('ada@people.example')
  const actor = { projectId: 'organization', requestId: 'req_1' }
  expect(organizationActor(requestWith(mine))).toEqual({
    ...actor,
    keyPrefix: 'console:ada@people.example',
  })
  expect(organizationActor(requestWith(null), sessionOfPerson(null))).toEqual({
    ...actor,
    keyPrefix: 'console:per_1',
  })
})

test('a console route gets the session of its request, and throws an error if the request has none', () => {
  const mine = sessionOfPerson(null)
  expect(sessionOf(requestWith(mine))).toBe(mine)
  expect(() => sessionOf(requestWith(null))).toThrow('this route needs access: console')
})

describe('the console finds the session of a request by its session cookie, and ignores other cookies', () => {
  let service: TestService
  let live: string
  beforeAll(async () => {
    service = await startTestService({ smtp: false, workers: false, env: { RATE_LIMIT_AUTH: '2' } })
    live = (await signIn(service)).cookie
  })
  afterAll(() => service[Symbol.asyncDispose]())

  const statusOf = async (cookie: string) =>
    (await consoleClient(service.url, cookie).get('/session')).status

  test('the console finds its session cookie between other cookies, with and without a space', async () => {
    for (const cookie of [
      live,
      `theme=dark; ${live}; x=1`,
      `theme=dark;${live};x=1`,
      `purser_session=short; ${live}`,
    ]) {
      expect([cookie, await statusOf(cookie)]).toEqual([cookie, 200])
    }
  })

  test('the console ignores a cookie with a wrong name or a malformed secret, and does not count it against the limit of wrong secrets', async () => {
    const secret = live.slice(live.indexOf('=') + 1)
    for (const cookie of [
      '',
      'purser_session',
      'purser_session=',
      `other=${secret}`,
      `__Secure-purser_session=${secret}`,
      `__Host-purser_session=${secret}`,
      `purser_session=${secret}A`,
      `purser_session=${secret.slice(1)}`,
      `purser_session=${'é'.repeat(43)}`,
    ]) {
      const { status, body } = await consoleClient(service.url, cookie).get('/session')
      expect([cookie, status, body.message]).toEqual([cookie, 401, UNAUTHORIZED])
    }
  })
})
