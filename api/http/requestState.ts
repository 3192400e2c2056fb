import type { Actor } from '../../sql/account/audit.ts'
import type { Identity } from '../../sql/account/keys/keys.ts'
import type { ConsoleSession } from '../../sql/account/people/consoleSessions.ts'
import type { Lsn } from '../../sql/operations/replica.ts'
import type { Route } from '../docs/routeTable.ts'
import type { Budget } from './gate.ts'

/** The state of one request, written by the stations of `app.ts`. */
export type RequestState = {
  /** The identifier in the log and in `X-Request-Id`. */
  requestId: string
  /** The caller's IP address, trusted proxies removed; empty before the gate. */
  clientAddress: string
  route: Route | null
  budget: Budget | null
  /** Set once the gate has checked key and scope. */
  identity: Identity | null
  /** Set once the gate has checked the console's cookie. */
  session: ConsoleSession | null
  /** The error behind an answer of 500 or more. */
  error: unknown
  /** How far a replica must be to have all that the caller's project wrote; null: anywhere. */
  writtenTo: Lsn | null
  /** Bytes of its body so far. */
  bodyBytes: number
}

const states = new WeakMap<Request, RequestState>()

export const newRequestState = (requestId: string): RequestState => ({
  requestId,
  clientAddress: '',
  route: null,
  budget: null,
  identity: null,
  session: null,
  error: undefined,
  writtenTo: null,
  bodyBytes: 0,
})

/** Gives a request its state. A request of the console and the API request made from it share one. */
export function attachState(request: Request, state: RequestState): void {
  states.set(request, state)
}

/** @throws {Error} when the request did not come through `app.ts`. */
export function stateOf(request: Request): RequestState {
  const state = states.get(request)
  if (state === undefined) throw new Error('the request has no state')
  return state
}

/** The identity of the request's key. */
export function identityOf(request: Request): Identity {
  const { identity } = stateOf(request)
  if (identity === null) throw new Error('this route asks for no key, yet for an identity')
  return identity
}

/** Who asks, for operations that check scopes and write the audit log by themselves. */
export type Caller = Actor & {
  scopes: readonly string[]
  /** Asks from the console. */
  isOwner: boolean
  /** Its mail waits for the owner: so the owner decided when the app was connected. */
  holdsMail: boolean
}

/** The caller of a request. For routes with a project scope only. */
export function callerOf(request: Request): Caller {
  const { projectId } = projectOf(request)
  const { keyPrefix, scopes, holdsMail = false } = identityOf(request)
  const { requestId, session } = stateOf(request)
  return { projectId, keyPrefix, scopes, requestId, isOwner: session !== null, holdsMail }
}

/** The project of the request's key, and its inbox. For routes with a project scope only. */
export function projectOf(request: Request): { projectId: string; inboxAddress: string } {
  const { projectId, inboxAddress } = identityOf(request)
  if (projectId === null || inboxAddress === null) {
    throw new Error('this route admits platform keys, yet asks for a project')
  }
  return { projectId, inboxAddress }
}
