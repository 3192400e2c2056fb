import { networksOf } from '../../shared/http/networkSubject.ts'
import type { Actor } from '../../sql/account/audit.ts'
import type { Identity } from '../../sql/account/keys/keys.ts'
import type { Usage } from '../../sql/account/keys/rateWindows.ts'
import type { ConsoleSession } from '../../sql/account/people/consoleSessions.ts'
import type { Lsn } from '../../sql/operations/replica.ts'
import type { Route } from '../docs/routeTable.ts'
import type { Budget } from './gate.ts'
import type { GrowingAnswer } from './limits/heldAnswers.ts'
import { peopleOf, type Reader } from './limits/loopTime.ts'

/** Holds the state of one HTTP request. The code in `app.ts` fills the state while it handles the request. */
export type RequestState = {
  /** Identifies the HTTP request in the log and in `X-Request-Id`. */
  requestId: string
  /**
   * Holds the IP address of the caller, and not that of a trusted proxy. It is empty until the gate (the checks before
   * every handler) has run.
   */
  clientAddress: string
  route: Route | null
  budget: Budget | null
  /**
   * Holds the count of the rate limit that the gate (the checks before every handler) made for this request. Null means
   * that no rate limit counts the request, or that a handler counts it instead.
   */
  usage: Usage | null
  /**
   * Holds the identity to which the API key belongs. The gate (the checks before every handler) sets the identity when
   * it has checked the API key and its scope.
   */
  identity: Identity | null
  /**
   * Holds the session of the person at the console. The gate (the checks before every handler) sets the session when it
   * has checked the console's cookie.
   */
  session: ConsoleSession | null
  /** Holds the error that caused an HTTP response with a status of 500 or more. */
  error: unknown
  /**
   * Holds a position in the write-ahead log behind everything that the caller's project has written. Only a replica
   * that has reached this position may answer the request. Null means that any replica may answer.
   */
  writtenTo: Lsn | null
  /**
   * Tells that the request changes nothing, although its HTTP method is POST. A replica may then answer the reads of
   * the request, and later reads of the project need not wait for the replica.
   */
  onlyReads: boolean
  /** Counts the memory of the response to a request with several calls (an MCP batch). */
  growing: GrowingAnswer | null
  /** Names the only MCP tool that the request calls. Null means that the request calls no tool, or several tools. */
  tool: string | null
  /** Counts the bytes of the request body that have already arrived. */
  bodyBytes: number
  /**
   * Checks again whether the caller may use the route, because the caller may have lost its rights while the body
   * arrived. Null means that everybody may use the route.
   */
  admitAgain: (() => Promise<void>) | null
}

const states = new WeakMap<Request, RequestState>()

export const newRequestState = (requestId: string): RequestState => ({
  requestId,
  clientAddress: '',
  route: null,
  budget: null,
  usage: null,
  identity: null,
  session: null,
  error: undefined,
  writtenTo: null,
  onlyReads: false,
  growing: null,
  tool: null,
  bodyBytes: 0,
  admitAgain: null,
})

/**
 * Attaches a state object to an HTTP request. A console request and the API request that the service makes from it
 * share one state object.
 */
export function attachState(request: Request, state: RequestState): void {
  states.set(request, state)
}

/** Returns the state of an HTTP request. @throws {Error} if the request did not come through `app.ts`. */
export function stateOf(request: Request): RequestState {
  const state = states.get(request)
  if (state === undefined) throw new Error('the request has no state')
  return state
}

/** Tells whether an HTTP request may change data of its project. */
export const mayWrite = (request: Request): boolean =>
  request.method !== 'GET' && request.method !== 'HEAD' && !stateOf(request).onlyReads

/**
 * Sets for how many milliseconds a read may last before the service checks the caller's key again, because the key may
 * be revoked in this time.
 */
const LATE_MS = 1_000

/**
 * Tells whether a request that reads data has lasted over a second. After such a request, the service checks the
 * caller's key again.
 */
export const isLate = (startedMs: number): boolean => performance.now() - startedMs > LATE_MS

/** Returns the widest network of a caller: an IPv4 address, or the /48 network of an IPv6 address. */
export const widestNetwork = (request: Request): string =>
  networksOf(stateOf(request).clientAddress).at(-1)!

/** Tells whether an HTTP request asks for public documents, which need no key. */
export const isStranger = (request: Request): boolean => stateOf(request).route?.access === 'public'

/**
 * Returns the party whose limits of memory and time count a request: a project, a platform key, or the people of a
 * project. The people are a separate party, so that an agent cannot keep its owner from the console. Returns null for a
 * caller without a key.
 */
export const partyOf = (request: Request): string | null => partyOfState(stateOf(request))

/** Returns the party of a request (such as its project) as {@link partyOf} does, from the state of the request. */
export function partyOfState({
  identity,
  session,
}: Pick<RequestState, 'identity' | 'session'>): string | null {
  if (identity === null) return null
  const { projectId, keyId } = identity
  if (projectId === null) return keyId
  return session === null ? projectId : peopleOf(projectId)
}

/**
 * Returns the party (such as a project) whose limit counts a read of data, with the route of the read. For a public
 * document, the network of the caller counts instead. Returns null for a request that may change data.
 */
export function readerOf(request: Request): Reader | null {
  const { route, tool } = stateOf(request)
  if (route === null || mayWrite(request)) return null
  if (isStranger(request)) {
    return { sharer: `network ${widestNetwork(request)}`, route: route.path }
  }
  const sharer = partyOf(request)
  if (sharer === null) return null
  return { sharer, route: tool === null ? route.path : toolRoute(route.path, tool) }
}

/** Returns the name under which the large responses of one MCP tool are counted. */
export const toolRoute = (path: string, tool: string): string => `${path} ${tool}`

/**
 * Returns the party (such as a project) whose memory limit counts the response to a request that changes data. Returns
 * null for a request that changes nothing, and for a caller without a key.
 */
export const changerOf = (request: Request): string | null =>
  mayWrite(request) ? partyOf(request) : null

/** Returns the identity of the API key that an HTTP request carries. */
export function identityOf(request: Request): Identity {
  const { identity } = stateOf(request)
  if (identity === null) throw new Error('this route asks for no key, yet for an identity')
  return identity
}

/** Describes the caller of an operation that checks scopes and writes the audit log itself. */
export type Caller = Actor & {
  scopes: readonly string[]
  /** Tells whether the caller is a person at the console. */
  isOwner: boolean
  /**
   * Tells whether the mail of this caller must wait for the owner's approval. An owner who connects an app to the
   * project decides whether the app's mail must wait.
   */
  holdsMail: boolean
}

/** Returns the caller of an HTTP request. Only routes with a project scope may use this function. */
export function callerOf(request: Request): Caller {
  const { projectId } = projectOf(request)
  const { keyPrefix, scopes, holdsMail = false } = identityOf(request)
  const { requestId, session } = stateOf(request)
  return { projectId, keyPrefix, scopes, requestId, isOwner: session !== null, holdsMail }
}

/**
 * Returns the id of the project to which the request's API key belongs, and the address of the project's inbox. Only
 * routes with a project scope may use this function.
 */
export function projectOf(request: Request): { projectId: string; inboxAddress: string } {
  const { projectId, inboxAddress } = identityOf(request)
  if (projectId === null || inboxAddress === null) {
    throw new Error('this route admits platform keys, yet asks for a project')
  }
  return { projectId, inboxAddress }
}
