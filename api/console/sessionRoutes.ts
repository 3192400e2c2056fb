import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { networkSubject } from '../../shared/http/networkSubject.ts'
import { ORGANIZATION, writeAudit } from '../../sql/account/audit.ts'
import {
  type ConsoleSession,
  endSessions,
  SECRET_FORM,
  startSession,
} from '../../sql/account/consoleSessions.ts'
import { readChainStatus } from '../../sql/till/watch/chainStatus.ts'
import { ApiError } from '../http/errors.ts'
import { countFailedSignIn } from '../http/gate.ts'
import { stateOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { actorOf, refuseOtherSites, sessionCookie, sessionOf } from './access.ts'
import { consoleOperation } from './consoleOperation.ts'

const SIGN_IN_MAX_BYTES = 1_024

const SignIn = t.Object({
  token: t.String({ pattern: SECRET_FORM.source, error: 'be the token of a sign-in link' }),
})

/** Sign-in with a one-time link, and sign-out. */
export const sessionRoutes = (services: Services) =>
  new Elysia({ prefix: '/console/api' })
    .post('/sessions', ({ request, body }) => signIn(services, request, body.token), {
      body: SignIn,
      detail: consoleOperation({ access: 'public', bodyMaxBytes: SIGN_IN_MAX_BYTES }),
    })
    .get('/session', ({ request }) => readSession(services, request), {
      detail: consoleOperation(),
    })
    .delete('/session', ({ request }) => endSession(services, request), {
      detail: consoleOperation(),
    })
    .delete('/sessions', ({ request }) => endAllSessions(services, request), {
      detail: consoleOperation(),
    })

async function signIn(services: Services, request: Request, token: string): Promise<Response> {
  const { pool, config } = services
  refuseOtherSites(request, config.http.baseUrl, false)
  const started = await startSession(pool, token)
  if (started === null) {
    await countFailedSignIn(services, networkSubject(stateOf(request).clientAddress))
    throw new ApiError(
      401,
      'unauthorized',
      'This link was used before, or its time is over: npm run console:login prints another',
    )
  }
  const { session, secret } = started
  await audit(services, request, { by: session, action: 'session.start', subject: session.id })
  return Response.json(
    { sessionId: session.id, expiresAt: session.expiresAt.toISOString() },
    {
      status: 201,
      headers: {
        'set-cookie': sessionCookie(config.http.baseUrl, secret, session.expiresAt),
        'cache-control': 'no-store',
      },
    },
  )
}

async function readSession({ pool, config }: Services, request: Request) {
  const session = sessionOf(request)
  const chain = await readChainStatus(pool)
  return {
    sessionId: session.id,
    expiresAt: session.expiresAt.toISOString(),
    baseUrl: config.http.baseUrl,
    mailDomain: config.mailDomain,
    capturesMail: config.relayUrl === 'capture',
    network: chain?.network ?? null,
  }
}

async function endSession(services: Services, request: Request): Promise<Response> {
  const session = sessionOf(request)
  await audit(services, request, { by: session, action: 'session.end', subject: session.id })
  await endSessions(services.pool, session.id)
  return signedOut(services)
}

async function endAllSessions(services: Services, request: Request): Promise<Response> {
  const by = sessionOf(request)
  await audit(services, request, { by, action: 'session.end_all', subject: null })
  await endSessions(services.pool, 'all')
  return signedOut(services)
}

const audit = (
  { pool }: Services,
  request: Request,
  { by, ...entry }: { by: ConsoleSession; action: string; subject: string | null },
) =>
  writeAudit(
    pool,
    { projectId: ORGANIZATION, keyPrefix: actorOf(by), requestId: stateOf(request).requestId },
    { ...entry, outcome: 'ok' },
  )

const signedOut = ({ config }: Services): Response => {
  const headers = { 'set-cookie': sessionCookie(config.http.baseUrl, null) }
  return new Response(null, { status: 204, headers })
}
