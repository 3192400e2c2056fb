import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { type OfferedScope, SCOPE_WORDS } from '../../shared/oauth/oauthScopes.ts'
import { redirectHost } from '../../shared/oauth/redirectUri.ts'
import { ORGANIZATION } from '../../sql/account/audit.ts'
import { listGrants, type OAuthGrant, revokeGrant } from '../../sql/account/oauth/oauthGrants.ts'
import {
  decideRequest,
  findRequest,
  NotDecidedForError,
} from '../../sql/account/oauth/oauthRequests.ts'
import { readBrowser } from '../http/browserCookie.ts'
import { badRequest, conflict, notFound } from '../http/errors.ts'
import { PageQuery } from '../http/operation.ts'
import { cutPage, readPage } from '../http/page.ts'
import { stateOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { redirectTo } from '../oauth/authorize.ts'
import { actorOf, sessionOf } from './access.ts'
import { consoleOperation } from './consoleOperation.ts'
import { decidesFor } from './people/roleGate.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const DAYS_MAX = 90

const RequestParams = t.Object({
  requestId: t.String({
    pattern: '^oar_[0-9a-f]{24}$',
    error: 'be the id of a request for access',
  }),
})
const GrantParams = t.Object({
  grantId: t.String({ pattern: '^oag_[0-9a-f]{24}$', error: 'be the id of a grant' }),
})
const Decision = t.Union([
  t.Object({ decision: t.Literal('deny') }),
  t.Object({
    decision: t.Literal('allow'),
    projectId: t.String({ maxLength: 100 }),
    scopes: t.Array(t.String({ maxLength: 100 }), { minItems: 1, maxItems: 20 }),
    days: t.Integer({ minimum: 1, maximum: DAYS_MAX }),
    holdsMail: t.Boolean(),
  }),
])

const OVER = 'This request is over: begin again in the app'
const NOT_DECIDED_FOR = 'projectId must be a project that you decide for'

/** Serves the data of the OAuth consent page, the decision on this page, and the apps that owners have connected. */
export function connectRoutes(services: Services) {
  const { pool, config } = services
  const { baseUrl } = config.http
  const by = (request: Request) => {
    const session = sessionOf(request)
    const { requestId } = stateOf(request)
    return { actor: actorOf(session), personId: session.person.id, requestId }
  }
  /**
   * Returns the projects for which the person may connect an app. Null means that the person may decide for every
   * project.
   */
  const ownProjects = (request: Request) => {
    const { person } = sessionOf(request)
    return person.role === 'operator' ? null : person.projectIds
  }
  return new Elysia({ prefix: '/console/api/oauth' })
    .get(
      '/requests/:requestId',
      async ({ request, params }) => {
        const browser = readBrowser(request, baseUrl)
        const found = browser === null ? null : await findRequest(pool, params.requestId, browser)
        if (found === null) throw notFound(OVER)
        const { clientName, clientHost, scopes, redirectUri } = found
        return {
          clientName,
          clientHost,
          redirectHost: redirectHost(redirectUri),
          scopes: scopes.map((scope) => ({ scope, ...SCOPE_WORDS[scope as OfferedScope] })),
        }
      },
      { params: RequestParams, detail: consoleOperation('owner') },
    )
    .post(
      '/requests/:requestId',
      async ({ request, params, body }) => {
        const browser = readBrowser(request, baseUrl)
        const found = browser === null ? null : await findRequest(pool, params.requestId, browser)
        if (browser === null || found === null) throw conflict(OVER)
        const { person } = sessionOf(request)
        if (body.decision === 'allow' && !decidesFor(person, body.projectId)) {
          throw badRequest(NOT_DECIDED_FOR)
        }
        const decided = await decideRequest(
          pool,
          {
            id: found.id,
            browser,
            consent:
              body.decision === 'deny'
                ? null
                : {
                    projectId: body.projectId,
                    scopes: chosen(body, found.scopes),
                    redirectHost: redirectHost(found.redirectUri),
                    holdsMail: body.holdsMail,
                    expiresAt: new Date(Date.now() + body.days * DAY_MS),
                  },
          },
          { ...by(request), organization: ORGANIZATION },
        ).catch((error: unknown) => {
          throw error instanceof NotDecidedForError ? conflict(NOT_DECIDED_FOR) : error
        })
        if (decided === null) throw conflict(OVER)
        const { state, redirectUri } = decided.request
        const answer =
          decided.code === null
            ? { error: 'access_denied', error_description: 'the owner said no', state }
            : { code: decided.code, state }
        return { redirectTo: redirectTo(redirectUri, answer, baseUrl) }
      },
      { params: RequestParams, body: Decision, detail: consoleOperation('owner') },
    )
    .get(
      '/grants',
      async ({ request, query }) => {
        const { limit, cursor } = readPage(query)
        const wanted = { projectIds: ownProjects(request), limit: limit + 1, cursor }
        const found = await listGrants(pool, wanted)
        const { page, next } = cutPage(found, limit, ({ createdAt }) => createdAt)
        return { grants: page.map(toView), ...next }
      },
      { query: PageQuery, detail: consoleOperation('owner') },
    )
    .delete(
      '/grants/:grantId',
      async ({ request, params }) => {
        const wanted = { grantId: params.grantId, projectIds: ownProjects(request) }
        if (!(await revokeGrant(pool, wanted, by(request)))) throw notFound('App not found')
        return new Response(null, { status: 204 })
      },
      { params: GrantParams, detail: consoleOperation('owner') },
    )
}

/**
 * Returns the scopes that the owner chose for an app. @throws {ApiError} 400 for a scope that the app did not request.
 */
function chosen(
  { scopes }: Extract<Static<typeof Decision>, { decision: 'allow' }>,
  asked: readonly string[],
): string[] {
  const other = scopes.find((scope) => !asked.includes(scope))
  if (other !== undefined) throw badRequest(`scopes must be asked for by the app: ${other} is not`)
  if (scopes.includes('mail:codes') && !scopes.includes('mail:read')) {
    throw badRequest('scopes must have mail:read beside mail:codes')
  }
  return [...new Set(scopes)]
}

const toView = ({ row: _, createdAt, expiresAt, usedAt, ...grant }: OAuthGrant) => ({
  ...grant,
  createdAt: createdAt.toISOString(),
  expiresAt: expiresAt.toISOString(),
  usedAt: usedAt?.toISOString() ?? null,
})
