/** Tests which requests the console admits: their site, their cookie, their session, and the cookie that it sets. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  actorOf,
  admitSession,
  organizationActor,
  refuseOtherSites,
  sessionCookie,
  sessionOf,
} from '../../../api/console/access.ts'
import { ApiError } from '../../../api/http/errors.ts'
import { attachState, newRequestState } from '../../../api/http/requestState.ts'
import { ORGANIZATION } from '../../../sql/account/audit.ts'
import {
  type ConsoleSession,
  createSignInLink,
  useSignInLink,
} from '../../../sql/account/people/consoleSessions.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { withinOneMinute } from '../../support/rateWindow.ts'

const BASE_URL = 'https://purser.example'
const ADDRESS = '203.0.113.7'
const OWN = { 'x-purser-console': '1' }

/** Makes a request of a browser, with a state as the service gives it. */
function requestOf(headers: Record<string, string>, method = 'GET'): Request {
  const request = new Request(`${BASE_URL}/console/api/me`, { method })
  for (const [name, value] of Object.entries(headers)) request.headers.set(name, value)
  attachState(request, newRequestState('req_1'))
  return request
}

/** Returns status and text of the error that refuses a request. */
async function faultOf(admit: () => unknown): Promise<string> {
  try {
    await admit()
  } catch (error) {
    if (error instanceof ApiError) return `${error.status} ${error.message}`
    throw error
  }
  return 'admitted'
}

describe('a request of another site', () => {
  const FOREIGN = '403 Only the page of the console may ask for this'
  const verdict = (headers: Record<string, string>, { framed = false, method = 'GET' } = {}) =>
    faultOf(() => refuseOtherSites(requestOf(headers, method), BASE_URL, framed))

  test('is refused by the site that its browser names', async () => {
    expect(await verdict(OWN)).toBe('admitted')
    expect(await verdict({ ...OWN, 'sec-fetch-site': 'same-origin' })).toBe('admitted')
    for (const site of ['same-site', 'cross-site', 'none', '']) {
      expect([site, await verdict({ ...OWN, 'sec-fetch-site': site })]).toEqual([site, FOREIGN])
    }
  })

  test('is refused by its origin, which is that of the service or of the requested host', async () => {
    const host = 'console.internal:8443'
    for (const origin of [BASE_URL, `https://${host}`, `http://${host}`]) {
      expect([origin, await verdict({ ...OWN, host, origin })]).toEqual([origin, 'admitted'])
    }
    for (const origin of [
      ...['null', '', 'purser.example', 'http://purser.example', `${BASE_URL}:8443`],
      ...['https://mail.purser.example', 'https://console.internal', 'https://evil.example'],
    ]) {
      expect([origin, await verdict({ ...OWN, host, origin })]).toEqual([origin, FOREIGN])
    }
  })

  test('is refused without the header of the page, whatever the value of the header is', async () => {
    expect(await verdict({})).toBe(FOREIGN)
    expect(await verdict({ 'sec-fetch-site': 'same-origin', origin: BASE_URL })).toBe(FOREIGN)
    for (const value of ['', 'watching', '0']) {
      expect(await verdict({ 'x-purser-console': value })).toBe('admitted')
    }
  })

  test('may lack the header only if it loads a mail into a frame, by GET or HEAD', async () => {
    for (const method of ['GET', 'HEAD']) {
      expect(await verdict({}, { framed: true, method })).toBe('admitted')
    }
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      expect(await verdict(OWN, { framed: true, method })).toBe(FOREIGN)
    }
    for (const other of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }]) {
      expect(await verdict(other as never, { framed: true })).toBe(FOREIGN)
    }
  })
})

describe('the cookie of a session', () => {
  const ATTRIBUTES = 'Path=/console; HttpOnly; SameSite=Strict'
  const expiresAt = new Date('2026-01-05T09:00:00Z')

  test('ends with the session, and is sent over TLS only if the service has TLS', () => {
    expect(sessionCookie(BASE_URL, 'abc', expiresAt)).toBe(
      `__Secure-purser_session=abc; Expires=Mon, 05 Jan 2026 09:00:00 GMT; ${ATTRIBUTES}; Secure`,
    )
    expect(sessionCookie('http://127.0.0.1:3000', 'abc', expiresAt)).toBe(
      `purser_session=abc; Expires=Mon, 05 Jan 2026 09:00:00 GMT; ${ATTRIBUTES}`,
    )
  })

  test('is deleted by an empty value', () => {
    expect(sessionCookie('http://127.0.0.1:3000', null, expiresAt)).toBe(
      `purser_session=; Max-Age=0; ${ATTRIBUTES}`,
    )
  })
})

describe('a request with a session', () => {
  const NAME = '__Secure-purser_session'
  const ENDED = '401 Sign in to the console: a session ends after 2 hours without use'
  let database: TestDatabase
  let session: ConsoleSession
  let secret: string
  beforeAll(async () => {
    database = await createTestDatabase()
    const token = await createSignInLink(database.pool)
    const started = await useSignInLink(database.pool, token, { secret: null, agent: null })
    ;({ session, secret } = started!)
  })
  afterAll(() => database[Symbol.asyncDispose]())

  const admit = (request: Request, { limit = 0, baseUrl = BASE_URL, address = ADDRESS } = {}) => {
    const config = { http: { baseUrl }, limits: { authFailuresPerMinute: limit } }
    const services = { config, gatePool: database.pool } as never
    return admitSession(services, request, { address, framed: false })
  }
  const withCookie = (cookie: string, headers: object = OWN) => requestOf({ cookie, ...headers })
  const unknown = () => `${NAME}=${'x'.repeat(43)}`

  test('is admitted by its cookie among other cookies', async () => {
    for (const cookie of [
      `${NAME}=${secret}`,
      `a=b; ${NAME}=${secret}; c=d`,
      `a=b;${NAME}=${secret}`,
      `${NAME}=short; ${NAME}=${secret}`,
    ]) {
      const request = withCookie(cookie)
      expect((await admit(request)).id).toBe(session.id)
      expect(sessionOf(request).id).toBe(session.id)
    }
  })

  test('is refused without a cookie of a live session', async () => {
    for (const cookie of [
      ...['', 'a=b', NAME, `${NAME}=`, `${NAME}=${secret}x`, `${NAME}=${secret.slice(1)}`],
      ...[`purser_session=${secret}`, `x${NAME}=${secret}`, unknown()],
    ]) {
      const request = withCookie(cookie)
      expect([cookie, await faultOf(() => admit(request))]).toEqual([cookie, ENDED])
      expect(() => sessionOf(request)).toThrow('this route needs access: console')
    }
    expect(await faultOf(() => admit(requestOf(OWN)))).toBe(ENDED)
  })

  test('has the cookie without the prefix on a service without TLS', async () => {
    const baseUrl = 'http://127.0.0.1:3000'
    expect((await admit(withCookie(`purser_session=${secret}`), { baseUrl })).id).toBe(session.id)
    expect(await faultOf(() => admit(withCookie(`${NAME}=${secret}`), { baseUrl }))).toBe(ENDED)
  })

  test('is refused for another site, although its session is live', async () => {
    const other = { ...OWN, origin: 'https://evil.example' }
    expect(await faultOf(() => admit(withCookie(`${NAME}=${secret}`, other)))).toStartWith('403')
  })

  test('keeps the session alive, unless the page only watches', async () => {
    const { pool } = database
    const ago = `clock_timestamp() - interval '1 hour'`
    const isRenewed = async (value: string) => {
      await pool.query(`update console_sessions set last_seen_at = ${ago}`)
      await admit(withCookie(`${NAME}=${secret}`, { 'x-purser-console': value }))
      const { rows } = await pool.query(
        `select last_seen_at > clock_timestamp() - interval '1 minute' as renewed from console_sessions`,
      )
      return rows[0].renewed
    }
    expect([await isRenewed('watching'), await isRenewed('1')]).toEqual([false, true])
  })

  test('counts wrong secrets of a network, and neither absent secrets nor live sessions', async () => {
    await withinOneMinute()
    const from = { limit: 2, address: '198.51.100.7' }
    for (const cookie of ['', 'a=b', `${NAME}=short`]) {
      for (let n = 0; n < 2; n++)
        expect(await faultOf(() => admit(withCookie(cookie), from))).toBe(ENDED)
    }
    const verdicts = []
    for (let n = 0; n < 3; n++)
      verdicts.push(await faultOf(() => admit(withCookie(unknown()), from)))
    expect(verdicts).toEqual([ENDED, ENDED, '429 Too many requests'])
    expect(await faultOf(() => admit(withCookie(`${NAME}=${secret}`), from))).toBe('admitted')
    expect(await faultOf(() => admit(withCookie(''), from))).toBe(ENDED)
    expect(await faultOf(() => admit(withCookie(unknown()), { ...from, address: ADDRESS }))).toBe(
      ENDED,
    )
  })

  test('acts in the name of the address of the person, or of the id', async () => {
    const request = withCookie(`${NAME}=${secret}`)
    await admit(request)
    const { id } = session.person
    const keyPrefix =
      session.person.email === null ? `console:${id}` : `console:${session.person.email}`
    expect(organizationActor(request)).toEqual({
      ...{ projectId: ORGANIZATION, keyPrefix, requestId: 'req_1' },
    })
    const ada = { ...session, person: { ...session.person, email: 'ada@example.com' } }
    expect(actorOf(ada)).toBe('console:ada@example.com')
    expect(actorOf({ ...ada, person: { ...ada.person, email: null } })).toBe(`console:${id}`)
    expect(organizationActor(request, ada).keyPrefix).toBe('console:ada@example.com')
  })
})
