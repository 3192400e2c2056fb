import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { networkSubject } from '../../../shared/http/networkSubject.ts'
import { writeAudit } from '../../../sql/account/audit.ts'
import {
  type ConsoleSession,
  endSession,
  endSessionsOf,
  type ListedSession,
  listSessions,
  SECRET_FORM,
  useSignInLink,
} from '../../../sql/account/people/consoleSessions.ts'
import { type Client, type Queryable, transaction } from '../../../sql/db.ts'
import { readChainStatus } from '../../../sql/till/watch/chainStatus.ts'
import { proofCookie, readBrowser } from '../../http/browserCookie.ts'
import { ApiError, notFound } from '../../http/errors.ts'
import { countFailedSignIn } from '../../http/gate.ts'
import { stateOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { organizationActor, refuseOtherSites, sessionCookie, sessionOf } from '../access.ts'
import { consoleOperation, openOperation } from '../consoleOperation.ts'
import { relyingParty } from './passkeys.ts'

const SIGN_IN_MAX_BYTES = 1_024

const SignIn = t.Object({
  token: t.String({ pattern: SECRET_FORM.source, error: 'be the token of a sign-in link' }),
})
const Params = t.Object({
  sessionId: t.String({ pattern: '^ses_[0-9a-f]{12}$', error: 'be the id of a session' }),
})

/** Serves sign-in with a one-time link, the sessions of people, and sign-out. */
export const sessionRoutes = (services: Services) =>
  new Elysia({ prefix: '/console/api' })
    .post('/sessions', ({ request, body }) => signIn(services, request, body.token), {
      body: SignIn,
      detail: openOperation({ bodyMaxBytes: SIGN_IN_MAX_BYTES }),
    })
    .get('/sign-in-ways', () => ways(services), { detail: openOperation() })
    .get('/session', ({ request }) => readSession(services, request), {
      detail: consoleOperation('viewer'),
    })
    .delete('/session', ({ request }) => signOut(services, request), {
      detail: consoleOperation('viewer'),
    })
    .get('/sessions', ({ request }) => list(services, request), {
      detail: consoleOperation('viewer'),
    })
    .delete('/sessions', ({ request }) => signOutEverywhere(services, request), {
      detail: consoleOperation('viewer'),
    })
    .delete('/sessions/:sessionId', ({ request, params }) => end(services, request, params), {
      params: Params,
      detail: consoleOperation('viewer'),
    })

async function signIn(services: Services, request: Request, token: string): Promise<Response> {
  const { baseUrl } = services.config.http
  refuseOtherSites(request, baseUrl, false)
  const secret = readBrowser(request, baseUrl)
  const agent = request.headers.get('user-agent')
  const answer = await signedIn(services, request, (db) =>
    useSignInLink(db, token, { secret, agent }),
  )
  if (answer !== null) return answer
  await countFailedSignIn(services, networkSubject(stateOf(request).clientAddress))
  throw new ApiError(
    401,
    'unauthorized',
    'This link was used before, its time is over, or another browser asked for it',
  )
}

/**
 * Starts a console session, and returns the response that gives the browser its session cookie. The response also holds
 * the proof that the person has signed in with this browser.
 * @param start starts the session in the transaction that also records it. If the database fails, the transaction is
 * undone, and the person can use the sign-in link again.
 * @returns null if `start` started no session.
 */
export async function signedIn(
  services: Services,
  request: Request,
  start: (db: Client) => Promise<{ session: ConsoleSession; secret: string } | null>,
): Promise<Response | null> {
  const { pool, config, browserProofs } = services
  const { baseUrl } = config.http
  const started = await transaction(pool, async (db) => {
    const found = await start(db)
    if (found === null) return null
    const { session } = found
    await audit(db, request, { by: session, action: 'session.start', subject: session.id })
    return found
  })
  if (started === null) return null
  const { session, secret } = started
  const headers = new Headers({ 'cache-control': 'no-store' })
  headers.append('set-cookie', sessionCookie(baseUrl, secret, session.expiresAt))
  const { email } = session.person
  if (email !== null) {
    headers.append('set-cookie', proofCookie(baseUrl, browserProofs.make(email)))
  }
  return Response.json(
    { sessionId: session.id, expiresAt: session.expiresAt.toISOString() },
    { status: 201, headers },
  )
}

/** Tells in which ways people can sign in other than by a link in a mail. */
const ways = ({ config }: Services) => ({
  passkeys: relyingParty(config.http.baseUrl) !== null,
  company: config.company === null ? null : new URL(config.company.issuer).hostname,
})

async function readSession({ pool, config }: Services, request: Request) {
  const { id, person, expiresAt } = sessionOf(request)
  const chain = await readChainStatus(pool)
  return {
    sessionId: id,
    person: { personId: person.id, name: person.name, email: person.email, role: person.role },
    expiresAt: expiresAt.toISOString(),
    baseUrl: config.http.baseUrl,
    mailDomain: config.mailDomain,
    capturesMail: config.relayUrl === 'capture',
    network: chain?.network ?? null,
  }
}

/**
 * Returns the id of the person whose sessions the response shows. Null means the sessions of every person, which only
 * an operator sees.
 */
const whose = ({ person }: ConsoleSession): string | null =>
  person.role === 'operator' ? null : person.id

async function list({ pool }: Services, request: Request) {
  const session = sessionOf(request)
  const found = await listSessions(pool, whose(session))
  return { sessions: found.map((one) => toView(one, session)) }
}

async function end(services: Services, request: Request, { sessionId }: { sessionId: string }) {
  const by = sessionOf(request)
  await transaction(services.pool, async (db) => {
    if (!(await endSession(db, sessionId, whose(by)))) throw notFound('Session not found')
    await audit(db, request, { by, action: 'session.end', subject: sessionId })
  })
  return sessionId === by.id ? signedOut(services) : new Response(null, { status: 204 })
}

async function signOut(services: Services, request: Request): Promise<Response> {
  const session = sessionOf(request)
  await transaction(services.pool, async (db) => {
    await endSession(db, session.id, null)
    await audit(db, request, { by: session, action: 'session.end', subject: session.id })
  })
  return signedOut(services)
}

async function signOutEverywhere(services: Services, request: Request): Promise<Response> {
  const by = sessionOf(request)
  await transaction(services.pool, async (db) => {
    await endSessionsOf(db, by.person.id)
    await audit(db, request, { by, action: 'session.end_all', subject: by.person.id })
  })
  return signedOut(services)
}

const audit = (
  db: Queryable,
  request: Request,
  { by, ...entry }: { by: ConsoleSession; action: string; subject: string | null },
) => writeAudit(db, organizationActor(request, by), { ...entry, outcome: 'ok' })

const signedOut = ({ config }: Services): Response => {
  const headers = { 'set-cookie': sessionCookie(config.http.baseUrl, null) }
  return new Response(null, { status: 204, headers })
}

const toView = (
  { id, createdAt, lastSeenAt, expiresAt, ...session }: ListedSession,
  current: ConsoleSession,
) => ({
  ...session,
  sessionId: id,
  isThis: id === current.id,
  createdAt: createdAt.toISOString(),
  lastSeenAt: lastSeenAt.toISOString(),
  expiresAt: expiresAt.toISOString(),
})
