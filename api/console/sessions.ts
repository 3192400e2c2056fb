import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { networkSubject } from '../../shared/http/networkSubject.ts'
import { ORGANIZATION, writeAudit } from '../../sql/account/audit.ts'
import { endSessions, SECRET_FORM, startSession } from '../../sql/account/consoleSessions.ts'
import { readChainStatus } from '../../sql/till/chainStatus.ts'
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
export function sessionRoutes(services: Services) {
  const { pool, config } = services
  const { baseUrl } = config.http
  const actor = (request: Request, keyPrefix: string) => ({
    projectId: ORGANIZATION,
    keyPrefix,
    requestId: stateOf(request).requestId,
  })
  const signedOut = () =>
    new Response(null, { status: 204, headers: { 'set-cookie': sessionCookie(baseUrl, null) } })
  return new Elysia({ prefix: '/console/api' })
    .post(
      '/sessions',
      async ({ request, body }) => {
        refuseOtherSites(request, baseUrl, false)
        const started = await startSession(pool, body.token)
        if (started === null) {
          await countFailedSignIn(services, networkSubject(stateOf(request).clientAddress))
          throw new ApiError(
            401,
            'unauthorized',
            'This link was used before, or its time is over: bun run console:login prints another',
          )
        }
        const { session, secret } = started
        await writeAudit(pool, actor(request, actorOf(session)), {
          action: 'session.start',
          subject: session.id,
          outcome: 'ok',
        })
        return Response.json(
          { sessionId: session.id, expiresAt: session.expiresAt.toISOString() },
          {
            status: 201,
            headers: {
              'set-cookie': sessionCookie(baseUrl, secret, session.expiresAt),
              'cache-control': 'no-store',
            },
          },
        )
      },
      {
        body: SignIn,
        detail: consoleOperation({ access: 'public', bodyMaxBytes: SIGN_IN_MAX_BYTES }),
      },
    )
    .get(
      '/session',
      async ({ request }) => {
        const session = sessionOf(request)
        const chain = await readChainStatus(pool)
        return {
          sessionId: session.id,
          expiresAt: session.expiresAt.toISOString(),
          baseUrl,
          mailDomain: config.mailDomain,
          capturesMail: config.relayUrl === 'capture',
          network: chain?.network ?? null,
        }
      },
      { detail: consoleOperation() },
    )
    .delete(
      '/session',
      async ({ request }) => {
        const session = sessionOf(request)
        await writeAudit(pool, actor(request, actorOf(session)), {
          action: 'session.end',
          subject: session.id,
          outcome: 'ok',
        })
        await endSessions(pool, session.id)
        return signedOut()
      },
      { detail: consoleOperation() },
    )
    .delete(
      '/sessions',
      async ({ request }) => {
        await writeAudit(pool, actor(request, actorOf(sessionOf(request))), {
          action: 'session.end_all',
          subject: null,
          outcome: 'ok',
        })
        await endSessions(pool, 'all')
        return signedOut()
      },
      { detail: consoleOperation() },
    )
}
