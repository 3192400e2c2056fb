import { Elysia, ValidationError } from 'elysia'
import { errorCode } from '../shared/errorCode.ts'
import { newRequestId } from '../shared/ids.ts'
import type { Span } from '../shared/process/span.ts'
import { traced } from '../shared/process/tracing.ts'
import { within } from '../shared/process/workContext.ts'
import { ORGANIZATION } from '../sql/account/audit.ts'
import { logUnclosed, openEntry, settingActionOf, subjectOf } from './account/changeEntries.ts'
import { logRoutes } from './account/logRoutes.ts'
import { projectRoutes } from './account/projectRoutes.ts'
import { whoamiRoutes } from './account/whoamiRoutes.ts'
import { admitConsole } from './console/admit.ts'
import { consoleRoutes } from './console/consoleRoutes.ts'
import { readDelegation } from './console/delegation.ts'
import { type MarkdownDocs, markdownDocs } from './docs/docsMarkdown.ts'
import { docsPageRoutes, docsRoutes } from './docs/docsRoutes.ts'
import { openApiDocument } from './docs/openApi.ts'
import { RouteTable } from './docs/routeTable.ts'
import { deliveryRoutes } from './events/deliveryRoutes.ts'
import { eventRoutes } from './events/eventRoutes.ts'
import { webhookRoutes } from './events/webhookRoutes.ts'
import {
  ApiError,
  badRequest,
  errorResponse,
  InvalidJsonError,
  notFound,
  toApiError,
} from './http/errors.ts'
import { describe, finish, preflight } from './http/finish.ts'
import { admit, admitAgain, GateRefusal, MCP_PATH } from './http/gate.ts'
import {
  BODY_MAX_BYTES,
  notAnObject,
  readForm,
  readFormPairs,
  readJson,
  readJsonValue,
} from './http/input/body.ts'
import { HeldBodies } from './http/input/heldBodies.ts'
import { refuseUnknownFields, refuseUnknownQuery } from './http/input/unknownFields.ts'
import { checkEncoding, readUrl } from './http/input/url.ts'
import { describeValidationError } from './http/input/validation.ts'
import { type ClientAddress, createClientAddress } from './http/limits/clientAddress.ts'
import type { UsageRecorder } from './http/limits/usage.ts'
import { errorPersonPage } from './http/personPage.ts'
import {
  attachState,
  changerOf,
  identityOf,
  isLate,
  mayWrite,
  newRequestState,
  type RequestState,
  readerOf,
  stateOf,
} from './http/requestState.ts'
import type { Services } from './http/services.ts'
import { heldRoutes } from './mail/approval/heldRoutes.ts'
import { calendarRoutes } from './mail/calendar/calendarRoutes.ts'
import { domainRoutes } from './mail/domainRoutes.ts'
import { emailRuleRoutes } from './mail/emailRuleRoutes.ts'
import { inboundRoutes } from './mail/inboundRoutes.ts'
import { attachmentTextRoutes } from './mail/messages/attachmentTextRoutes.ts'
import { messageChangeRoutes } from './mail/messages/messageChangeRoutes.ts'
import { messageContentRoutes } from './mail/messages/messageContentRoutes.ts'
import { messageRoutes } from './mail/messages/messageRoutes.ts'
import { messageWaitRoutes } from './mail/messages/messageWaitRoutes.ts'
import { threadChangeRoutes } from './mail/messages/threadChangeRoutes.ts'
import { threadRoutes } from './mail/messages/threadRoutes.ts'
import { mtaStsRoutes } from './mail/mtaStsRoutes.ts'
import { sendingRoutes } from './mail/outbound/sendingRoutes.ts'
import { suppressionRoutes } from './mail/outbound/suppressionRoutes.ts'
import { reportRoutes } from './mail/reportRoutes.ts'
import { mcpRoutes, parseError } from './mcp/mcpRoutes.ts'
import { oauthRoutes } from './oauth/oauthRoutes.ts'
import { healthReportRoutes } from './operations/healthReportRoutes.ts'
import { healthRoutes } from './operations/healthRoutes.ts'
import { metricsRoutes } from './operations/metricsRoutes.ts'
import { askedRoutes } from './purse/askedRoutes.ts'
import { ownerPurseRoutes } from './purse/ownerPurseRoutes.ts'
import { purseRoutes } from './purse/purseRoutes.ts'
import { discoveryRoutes } from './till/endpoints/discoveryRoutes.ts'
import { endpointRoutes } from './till/endpoints/endpointRoutes.ts'
import { wellKnownRoutes } from './till/endpoints/wellKnownRoutes.ts'
import { facilitatorRoutes } from './till/facilitator/facilitatorRoutes.ts'
import { activityRoutes } from './till/payments/activityRoutes.ts'
import { bookRoutes } from './till/payments/bookRoutes.ts'
import { funnelRoutes } from './till/payments/funnelRoutes.ts'
import { paidHeaderRoutes } from './till/payments/paidHeaderRoutes.ts'
import { paymentRecordRoutes } from './till/payments/paymentRecordRoutes.ts'
import { paymentRoutes } from './till/payments/paymentRoutes.ts'
import { freeUnread } from './till/payments/redeem/redeemPlaces.ts'
import { refundRoutes } from './till/payments/refundRoutes.ts'
import { vaultRoutes } from './vault/vaultRoutes.ts'
import { vaultUseRoutes } from './vault/vaultUseRoutes.ts'
import { vaultVersionRoutes } from './vault/vaultVersionRoutes.ts'

/** Returns the response to one HTTP request that came from the given socket address. */
export type App = (request: Request, socketAddress: string) => Promise<Response>

const REQUEST_ID = /^[\w.:-]{1,128}$/

/**
 * Sets after how many milliseconds a request body counts as late. A body may take two minutes to arrive, and a revoked
 * key must stop working at once. Therefore the service checks the caller's key again after a late body.
 */
const LATE_BODY_MS = 500

/**
 * Creates the HTTP application. Every HTTP request passes the same steps: request id, route, key, limit, scope, body,
 * input schema, handler. The function `finish` completes every HTTP response.
 */
export function createApp(services: Services, usage: UsageRecorder): App {
  const bodies = new HeldBodies()
  const elysia = createRoutes(services, bodies)
  const routes = new RouteTable(elysia)
  const clientAddress = createClientAddress(services.config.trustedProxies)
  return async (request, socketAddress) => {
    const startedMs = performance.now()
    const given = request.headers.get('x-request-id') ?? ''
    const state = newRequestState(REQUEST_ID.test(given) ? given : newRequestId())
    attachState(request, state)
    const answer = async (span: Span) => {
      let response: Response
      let closeEntry: Admitted['answered']
      try {
        const parts = { routes, clientAddress, usage }
        const admitted = await passGate(services, parts, request, socketAddress, state)
        closeEntry = admitted.answered
        const reader = readerOf(request)
        if (reader !== null) services.loopTime.admit(reader)
        const changer = changerOf(request)
        if (changer !== null) services.answers.admitChange(changer)
        response = admitted.preflight ?? (await elysia.handle(admitted.request))
        if (mustCheckAgain(request, startedMs)) await state.admitAgain?.()
        response = (await admitted.shown?.(response)) ?? response
      } catch (error) {
        response = fail(state, error)
      } finally {
        bodies.release(state)
      }
      // If the audit log cannot record the outcome of a change, the service only logs this error, because the change is
      // already made. An error response would hide the handler's response, which may hold a key that is shown only once.
      await closeEntry?.(response).catch((error) => logUnclosed(services.log, error))
      await noteWrite(services, request, state)
      await freeUnread(services, state).catch((error: unknown) => {
        services.log.warn({ err: error }, 'a redeem call keeps its place')
      })
      finish(services, request, response, state, performance.now() - startedMs)
      describe(span, request, response, state)
      return response
    }
    const parent = request.headers.get('traceparent')
    return within({ requestId: state.requestId }, () =>
      traced(request.method, { kind: 'server', parent }, answer),
    )
  }
}

/**
 * Tells whether the service checks the caller of a read again when the response is ready. A read may wait for a minute,
 * for example for the end of a purchase, and meanwhile the owner may revoke the key. The function returns false for a
 * request with MCP calls. Each of these calls checks its caller itself, with its own scope, because it must respond
 * with a tool error.
 */
const mustCheckAgain = (request: Request, startedMs: number): boolean =>
  isLate(startedMs) && !mayWrite(request) && stateOf(request).route?.path !== MCP_PATH

/**
 * Records that a project has written to the database, so that its later reads see the written data, on the primary and
 * on the replica.
 */
async function noteWrite(
  { reads }: Services,
  request: Request,
  { identity }: RequestState,
): Promise<void> {
  const projectId = identity?.projectId ?? null
  if (projectId === null || !mayWrite(request)) return
  await reads.wrote(projectId)
}

function createRoutes(services: Services, bodies: HeldBodies) {
  // With `standardHostname`, Elysia skips eleven characters of the URL. Therefore it would miss the path after a very
  // short Host header.
  const api = new Elysia({ strictPath: true, handler: { standardHostname: false } })
    .onError({ as: 'global' }, ({ code, error, request }) => {
      return fail(stateOf(request), code === 'NOT_FOUND' ? notFound() : error)
    })
    .onParse({ as: 'global' }, async ({ request }) => {
      const state = stateOf(request)
      const { route } = state
      const limit = {
        maxBytes: bodyMaxBytes(state),
        ...(route?.largeFor === undefined ? {} : { largeFor: route.largeFor }),
        hold: (bytes: number, end: (error: ApiError) => void) => bodies.hold(state, bytes, end),
      }
      const startedMs = performance.now()
      const read = !route?.form ? readJson : route.form === 'pairs' ? readFormPairs : readForm
      const body = route?.anyJson
        ? (await readJsonValue(request, limit))?.value
        : await read(request, limit)
      bodies.complete(state)
      if (performance.now() - startedMs > LATE_BODY_MS) {
        // The error hook of Elysia turns each error into an ApiError, because Elysia would report any other error as a
        // fault of the request body.
        await state.admitAgain?.().catch((error: unknown) => {
          if (error instanceof ApiError) throw error
          throw Object.assign(toApiError(error, state.requestId), { cause: error })
        })
      }
      const isOpen =
        route?.access === 'public' || route?.form !== undefined || route?.openBody === true
      if (!isOpen) refuseUnknownFields(body, route?.body)
      // The parse hook returns `null` instead of `undefined`, because after `undefined`, Elysia would parse the body
      // itself. The value `null` is safe, because the schema of every route with a body refuses it.
      return body ?? null
    })
    .use(healthRoutes(services))
    .use(mtaStsRoutes(services))
    .use(metricsRoutes(services))
    .use(whoamiRoutes(services))
    .use(messageRoutes(services))
    .use(messageWaitRoutes(services))
    .use(calendarRoutes(services))
    .use(messageContentRoutes(services))
    .use(attachmentTextRoutes(services))
    .use(eventRoutes(services))
    .use(emailRuleRoutes(services))
    .use(messageChangeRoutes(services))
    .use(threadChangeRoutes(services))
    .use(sendingRoutes(services))
    .use(suppressionRoutes(services))
    .use(threadRoutes(services))
    .use(vaultRoutes(services))
    .use(vaultVersionRoutes(services))
    .use(vaultUseRoutes(services))
    .use(purseRoutes(services))
    .use(refundRoutes(services))
    .use(ownerPurseRoutes(services))
    .use(askedRoutes(services))
    .use(logRoutes(services))
    .use(endpointRoutes(services))
    .use(deliveryRoutes(services))
    .use(webhookRoutes(services))
    .use(projectRoutes(services))
    .use(domainRoutes(services))
    .use(healthReportRoutes(services))
    .use(inboundRoutes(services))
    .use(reportRoutes(services))
    .use(heldRoutes(services))
    .use(paymentRoutes(services))
    .use(activityRoutes(services))
    .use(funnelRoutes(services))
    .use(paidHeaderRoutes(services))
    .use(bookRoutes(services))
    .use(paymentRecordRoutes(services))
    .use(facilitatorRoutes(services))
    .use(discoveryRoutes(services))
    .use(wellKnownRoutes(services))
  const { baseUrl } = services.config.http
  const document = openApiDocument(api, baseUrl)
  let markdown: MarkdownDocs | undefined
  const markdownOnce = () => (markdown ??= markdownDocs(document, baseUrl))
  // The OpenAPI document leaves out all routes that are added below this line.
  return api
    .use(docsRoutes(document, markdownOnce))
    .use(docsPageRoutes())
    .use(mcpRoutes(services))
    .use(oauthRoutes(services))
    .use(consoleRoutes(services))
}

/**
 * Returns the maximum body size for the route of a request. A caller without the scope for large bodies gets only the
 * default size.
 */
function bodyMaxBytes({ route, identity }: RequestState): number {
  const { largeScope, bodyMaxBytes = BODY_MAX_BYTES } = route ?? {}
  const isLarge = largeScope === undefined || identity?.scopes.includes(largeScope) === true
  return isLarge ? bodyMaxBytes : Math.min(bodyMaxBytes, BODY_MAX_BYTES)
}

/**
 * Describes a request that the gate (the checks of key, rate limit and scope) has admitted. The gate rewrites the path
 * of a console request to the path of the API. For a CORS preflight, the gate has already made the response.
 */
type Admitted = {
  request: Request
  preflight?: Response
  answered?: (response: Response) => Promise<void>
  /** Returns the response with only the data that the person at the console may see. */
  shown?: (response: Response) => Promise<Response>
}

async function passGate(
  services: Services,
  parts: { routes: RouteTable; clientAddress: ClientAddress; usage: UsageRecorder },
  request: Request,
  socketAddress: string,
  state: RequestState,
): Promise<Admitted> {
  const url = readUrl(request)
  const delegation = readDelegation(url.pathname)
  const opened = request.method === 'OPTIONS' ? parts.routes.openMethod(url.pathname) : null
  const isPreflight = opened !== null
  const method = opened ?? request.method
  const match = parts.routes.match(method, delegation?.path ?? url.pathname)
  if (match.kind === 'none') throw notFound()
  if (match.kind === 'method') {
    throw new ApiError(405, 'method_not_allowed', `${request.method} is not allowed here`, {
      allow: match.allowed.join(', '),
    })
  }
  const { access, path } = match.route
  state.route = delegation === null ? match.route : { ...match.route, path: `/console/api${path}` }
  if (isPreflight) return { request, preflight: preflight(method) }
  const from = parts.clientAddress(socketAddress, request.headers.get('x-forwarded-for'))
  state.clientAddress = from
  if (delegation !== null || access === 'console') {
    checkEncoding(url)
    if (delegation !== null) refuseUnknownQuery(url.searchParams, match.route.query)
    return await admitConsole(services, { request, route: match.route, delegation, from })
  }
  if (access !== 'public') {
    const authorization = request.headers.get('authorization')
    const { identity, budget, usage, writtenTo } = await admit(
      services,
      { access, path },
      authorization,
      from,
    )
    state.budget = budget
    state.usage = usage
    state.identity = identity
    state.writtenTo = writtenTo
    state.admitAgain = async () => {
      state.identity = await admitAgain(services, access, identity, authorization)
    }
    parts.usage.record(
      identity.projectId === null
        ? { kind: 'platform', id: identity.keyId }
        : { kind: 'project', id: identity.projectId },
    )
  }
  checkEncoding(url)
  // Public pages accept unknown query parameters, because pages on other sites add such parameters to their links.
  if (access !== 'public') refuseUnknownQuery(url.searchParams, match.route.query)
  const action = settingActionOf(match.route)
  if (action === null) return { request }
  const { projectId, keyPrefix } = identityOf(request)
  const actor = { projectId: projectId ?? ORGANIZATION, keyPrefix, requestId: state.requestId }
  const entry = { action, subject: subjectOf(match.route, url.pathname) }
  return { request, answered: await openEntry(services.pool, actor, entry) }
}

/**
 * Returns the HTTP response to an error that a handler threw. The object `state` keeps the error for the log line of
 * the request.
 */
function fail(state: RequestState, thrown: unknown): Response {
  if (thrown instanceof GateRefusal) {
    state.budget = thrown.budget
    return answerOf(state, thrown.error)
  }
  const error = unwrap(thrown)
  if (error instanceof InvalidJsonError && state.route?.path === MCP_PATH) return parseError()
  const shown = toApiError(error, state.requestId)
  if (shown.status >= 500) state.error = error
  return answerOf(state, shown)
}

/** Returns an error as a page if a person opens the route in a browser, and otherwise as JSON. */
const answerOf = ({ route }: RequestState, error: ApiError): Response =>
  route?.page === true ? errorPersonPage(error) : errorResponse(error)

/** Turns an error of Elysia into an ApiError. Elysia also wraps the errors of a body parser. */
function unwrap(thrown: unknown): unknown {
  if (thrown instanceof ValidationError) {
    if (thrown.type === 'body' && thrown.value === null) return notAnObject()
    const first = thrown.valueError ?? thrown.all[0]
    const source = thrown.type === 'property' ? 'input' : thrown.type
    return badRequest(
      describeValidationError(source, first as Parameters<typeof describeValidationError>[1]),
    )
  }
  if (errorCode(thrown) === 'PARSE') {
    const { cause } = thrown as Error
    return cause instanceof ApiError ? cause : badRequest('The body must be valid JSON')
  }
  return thrown
}
