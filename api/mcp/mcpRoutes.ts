import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Config } from '../../shared/config/config.ts'
import { offeredScopes } from '../../shared/oauth/oauthScopes.ts'
import { resourceMetadataUrl } from '../../shared/oauth/resource.ts'
import { ApiError, badRequest } from '../http/errors.ts'
import { countFurther, MCP_PATH } from '../http/gate.ts'
import { MAIL_BODY_MAX_BYTES, notAnObject } from '../http/input/body.ts'
import { operation } from '../http/operation.ts'
import { callerOf, identityOf, stateOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { methodOf } from './methodOf.ts'
import { findTool } from './naming.ts'
import type { Tool } from './tools/tool.ts'

/**
 * Holds the last version of MCP that allows JSON-RPC batches. Clients of this MCP version send no header that names the
 * version.
 */
const BATCH_VERSION = '2025-03-26'
const BATCH_MAX = 20
/**
 * Limits the bytes that the reads of an MCP batch return together, because the service holds the results until the last
 * call has ended.
 */
const BATCH_MAX_BYTES = 8 * 1024 * 1024
/** Holds the error code for a request body that is not JSON (JSON-RPC 2.0 §5.1). */
const PARSE_ERROR = -32_700

/**
 * Loads the MCP SDKs only at the first MCP request of a process, because they cost 13 MB of memory and 0.1 s of CPU.
 */
const loadExchange = () => import('./exchange.ts')

const Query = t.Object({
  names: t.Optional(t.Union([t.Literal('dotted'), t.Literal('underscore')])),
})

/**
 * Serves MCP over Streamable HTTP without sessions. Each HTTP request gets a new MCP server object, so any API process
 * can answer it. GET and DELETE belong to MCP sessions, so they return 405 to a caller with a valid key.
 */
export function mcpRoutes(services: Services) {
  return new Elysia()
    .post(MCP_PATH, ({ request, query, body }) => answer(services, request, body, query.names), {
      query: Query,
      detail: operation({
        ...DETAIL,
        anyJson: true,
        bodyMaxBytes: MAIL_BODY_MAX_BYTES,
        largeFor: 'attachments',
        largeScope: 'mail:send',
      }),
    })
    .get(MCP_PATH, refuseSession, { detail: operation(DETAIL) })
    .delete(MCP_PATH, refuseSession, { detail: operation(DETAIL) })
}

const DETAIL = {
  summary: 'MCP over Streamable HTTP',
  tag: 'Service',
  access: 'key',
  success: { status: 200, description: 'JSON-RPC.' },
} as const

/**
 * Refuses requests for MCP sessions only after the gate (the check of the API key), because a host with a wrong key
 * must get a 401 first.
 */
function refuseSession(): never {
  throw new ApiError(405, 'method_not_allowed', 'MCP has no sessions here: use POST', {
    allow: 'POST',
  })
}

async function answer(
  services: Services,
  request: Request,
  given: unknown,
  names: 'dotted' | 'underscore' | undefined,
): Promise<Response> {
  const { projectId, inboxAddress, kind, scopes } = identityOf(request)
  if (projectId === null || inboxAddress === null) {
    throw new ApiError(
      403,
      'forbidden',
      'MCP acts as one project: use a project key (loid-…) instead of a platform key',
    )
  }
  refuseForeignOrigin(request.headers.get('origin'), services.config.http.baseUrl)
  const body = readMessages(given, request.headers.get('mcp-protocol-version'))
  if (body === null) return new Response(null, { status: 202 })
  if (kind === 'oauth') requireScope(body, scopes, services.config)
  const calls = toolCalls(body)
  const state = stateOf(request)
  state.budget = (await countFurther(services, projectId, calls.length - 1)) ?? state.budget
  state.onlyReads = calls.every(isRead)
  const [call, ...others] = calls
  const isAlone = call !== undefined && others.length === 0
  state.tool = isAlone ? (toolOf(call)?.name ?? null) : null
  const isBatch = Array.isArray(body) && body.length > 1
  state.growing = isBatch ? services.answers.grow(projectId, BATCH_MAX_BYTES) : null
  const { exchange } = await loadExchange()
  return exchange(request, body, {
    services,
    projectId,
    inboxAddress,
    caller: callerOf(request),
    // A caller with OAuth gets tool names with underscores, because an MCP host with OAuth refuses a name with a dot.
    naming: names ?? (kind === 'oauth' ? ('underscore' as const) : ('dotted' as const)),
    request,
  })
}

/**
 * Asks an MCP host to request an additional scope from the owner (RFC 6750 §3.1), if the owner can grant this scope on
 * the consent page. The challenge in WWW-Authenticate lists both the present scopes and the missing scope, because some
 * hosts forget their present scopes.
 * @throws {ApiError} 403 with the missing scope in the header WWW-Authenticate.
 */
function requireScope(
  body: object,
  held: readonly string[],
  { http: { baseUrl }, oauthPurseScopes }: Config,
): void {
  if (Array.isArray(body) || methodOf(body) !== 'tools/call') return
  const scope = toolOf(body)?.scope
  const offered: readonly (string | undefined)[] = offeredScopes(oauthPurseScopes)
  const isOffered = offered.includes(scope)
  if (scope === undefined || held.includes(scope) || !isOffered) return
  throw new ApiError(403, 'forbidden', `Missing required scope: ${scope}`, {
    'www-authenticate': `Bearer realm="purser", error="insufficient_scope", scope="${[...held, scope].join(' ')}", resource_metadata="${resourceMetadataUrl(baseUrl)}"`,
  })
}

function toolOf(call: object): Tool | undefined {
  const name = (call as { params?: { name?: unknown } }).params?.name
  return typeof name === 'string' ? findTool(name) : undefined
}

/**
 * Prevents DNS rebinding, by which a page of another site could reach an MCP server on the user's machine (MCP,
 * Streamable HTTP, security warning). Browsers always send an Origin header, but other programs never do.
 */
function refuseForeignOrigin(origin: string | null, baseUrl: string): void {
  if (origin === null || !URL.canParse(origin)) return
  const { protocol, hostname } = new URL(origin)
  if (protocol !== 'http:' && protocol !== 'https:') return
  const own = ['localhost', '127.0.0.1', '[::1]', new URL(baseUrl).hostname]
  if (own.includes(hostname)) return
  throw new ApiError(403, 'forbidden', 'Pages of this Origin may not use this MCP server')
}

/**
 * Reads the JSON-RPC message or batch of an HTTP request.
 * @returns the JSON-RPC messages that need a response. Null means that no message needs one.
 * @throws {ApiError} 400 for a body that is not a JSON-RPC message, and for a batch that uses an id twice.
 */
function readMessages(value: unknown, version: string | null): object | null {
  if (typeof value !== 'object' || value === null) throw notAnObject()
  if (!Array.isArray(value)) return isCancellation(value) ? null : value
  if (version !== null && version !== BATCH_VERSION) {
    throw badRequest(`MCP ${version} has no batches: send one message in each request`)
  }
  if (value.length === 0 || value.length > BATCH_MAX) {
    throw badRequest(`A batch must have 1 to ${BATCH_MAX} messages`)
  }
  const rest = value.filter((message) => !isCancellation(message))
  // The code refuses two calls with the same id in a batch, because the MCP SDK finds the answer to a call by its id.
  // It would run both calls and answer only one of them.
  const ids = rest.map((message) => message?.id).filter((id) => id !== undefined && id !== null)
  if (new Set(ids).size < ids.length) throw badRequest('A batch must not use an id twice')
  return rest.length === 0 ? null : rest
}

/**
 * Returns the response to a request body that is not JSON (JSON-RPC 2.0 §5.1). The request id in it is null, because
 * nobody can read the id.
 */
export function parseError(): Response {
  const error = {
    code: PARSE_ERROR,
    message: 'Parse error: the body must be valid JSON',
  }
  return Response.json({ jsonrpc: '2.0', id: null, error }, { status: 400 })
}

/**
 * Tells whether a JSON-RPC message cancels a request. The service keeps no MCP sessions, so such a message cannot
 * cancel a request of another connection. If it cancelled a request of the same batch, the MCP SDK's transport would
 * wait for ever for the response to this request.
 */
const isCancellation = (message: unknown): boolean =>
  methodOf(message) === 'notifications/cancelled'

const toolCalls = (body: object): object[] =>
  [body].flat().filter((message) => methodOf(message) === 'tools/call')

/** Tells whether an MCP tool call changes nothing. The call of an unknown tool counts as a change. */
const isRead = (call: object): boolean => toolOf(call)?.hints.readOnlyHint === true
