/**
 * Holds the operations with which an agent buys from sellers. The REST API and the MCP tools share these operations.
 */
import type { Static } from '@sinclair/typebox'
import { headerKey } from '../../shared/http/headerName.ts'
import { outboundUrlFault } from '../../shared/http/outboundUrl.ts'
import { parseUsdc } from '../../shared/till/usdc.ts'
import type { UseMethod } from '../../shared/vault/bounds/useMethods.ts'
import { CredentialInputError, checkName } from '../../shared/vault/credential.ts'
import {
  checkUseRequest,
  toolCall,
  type UseRequest,
  type UseTarget,
} from '../../shared/vault/useRequest.ts'
import { DIGITS_RULE, losesDigits } from '../../shared/wholeNumbers.ts'
import { acceptPurchase } from '../../sql/purse/purchases/acceptPurchase.ts'
import { findPurchase } from '../../sql/purse/purchases/purchases.ts'
import { findPurse } from '../../sql/purse/purses.ts'
import { ApiError, badRequest, notFound } from '../http/errors.ts'
import { keyOfAnother, requestHash } from '../http/input/idempotencyKey.ts'
import type { Caller } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { failure, orBadRequest, requireScope } from '../vault/vault.ts'
import { type GivenRequest, judgeFilling, readRequest } from '../vault/vaultUse.ts'
import {
  hasEnded,
  type PurchaseSchema,
  type PurseSchema,
  toPurchaseView,
  toPurseView,
} from './purseDocs.ts'

type Buying = Pick<Services, 'pool' | 'keyring' | 'waiters' | 'config'>
type PurchaseView = Static<typeof PurchaseSchema>

/** Describes an HTTP request that an agent pays for. */
export type GivenPurchase = {
  url: string
  method?: UseMethod
  headers?: Record<string, string>
  body?: unknown
  /** Names the MCP tool that the service calls at the server of `url`. */
  tool?: { name: string; arguments?: Record<string, unknown> }
  /** Names the vault credential whose values replace the {{fields}} in the request. */
  credential?: string
  maxAmount?: string
  why?: string
}

const RETRY_S = 5
/**
 * Limits the characters of the normalised URL path of a purchase. The database finds earlier purchases by host and
 * path, and an entry of its index has at most 2,704 bytes.
 */
const PATH_MAX_LENGTH = 2_000
/** Names the HTTP headers that carry a payment. Only the service may write them. */
const PAYMENT_HEADERS = [
  'x-payment',
  'payment-signature',
  'payment-authorization',
  'sign-in-with-x',
]

/**
 * Handles the routes POST /v0/purse/pay, which buys from a seller, and POST /v0/purse/quote, which asks a seller for a
 * price. The function waits at most `waitMs` for the end of the purchase.
 * @param key is the Idempotency-Key of the purchase. Null means that the caller asks for a quote, which has no
 * Idempotency-Key.
 * @throws {ApiError} 400 for an invalid request, 401 for a revoked key, 403 for a missing scope, 409 for an idempotency
 * key that belongs to another purchase, 429 if the project exceeds a limit.
 */
export async function purchase(
  services: Buying,
  caller: Caller,
  kind: 'payment' | 'quote',
  { given, key, waitMs }: { given: GivenPurchase; key: string | null; waitMs: number },
): Promise<PurchaseView> {
  requireScope(caller, kind === 'payment' ? 'purse:pay' : 'purse:read')
  const { pool } = services
  const { maxAmount = '0', why, credential: name, tool, ...asked } = given
  const request = tool === undefined ? readRequest(asked, 'body') : toolRequest(asked, tool)
  if (name !== undefined) {
    requireScope(caller, 'vault:use')
    orBadRequest(() => checkName(name))
  }
  const { allowPrivateNetworks: allowPrivate } = services.config
  const target = targetOf(request, allowPrivate)
  if (target.path.length > PATH_MAX_LENGTH) {
    throw badRequest(`url must have a path of at most ${PATH_MAX_LENGTH} characters`)
  }
  const fault = outboundUrlFault(request.url, allowPrivate)
  if (fault !== null) throw badRequest(`url must be one that the service may call: ${fault}`)
  for (const name of Object.keys(request.headers)) {
    if (PAYMENT_HEADERS.includes(headerKey(name))) {
      throw badRequest(`headers must not hold ${name.toLowerCase()}: the service writes it`)
    }
  }
  const maxAtomic = kind === 'quote' ? 0n : orBadAmount(maxAmount)
  const accepted = await acceptPurchase(pool, {
    actor: caller,
    keyring: await services.keyring(pool),
    kind,
    request,
    target,
    tool: tool?.name ?? null,
    credential:
      name === undefined
        ? null
        : { name, judge: judgeFilling(name, tool === undefined ? request : toolCall(request)) },
    requestHash: requestHash({
      request,
      maxAmount: String(maxAtomic),
      why: why ?? null,
      // The hash of a purchase covers only the fields that the request contains. Therefore a request without newer
      // fields has the same hash as in an earlier version of the service.
      ...(tool === undefined ? {} : { tool: tool.name }),
      ...(name === undefined ? {} : { credential: name }),
    }),
    key,
    maxAtomic,
    why: why ?? null,
  })
  switch (accepted.kind) {
    case 'ok':
      return readPurchase(services, caller, { id: accepted.id, waitMs, untilAsked: true })
    case 'other_request':
      throw keyOfAnother()
    case 'busy':
      throw new ApiError(
        429,
        'rate_limited',
        'The project has too many purchases under way, or too many answers kept',
        { 'retry-after': String(RETRY_S) },
      )
    case 'refused_by_judge':
      throw accepted.refusal
    case 'credential':
      throw failure(name ?? '', accepted.failed, '')
    default:
      throw new ApiError(401, 'unauthorized', 'Invalid API key')
  }
}

/**
 * Returns the HTTP request with which the service calls a seller's MCP tool. The body of the HTTP request holds the
 * arguments of the MCP tool.
 * @throws {ApiError} 400
 */
function toolRequest(
  { url, headers = {}, method, body }: GivenRequest,
  { arguments: given = {} }: { arguments?: Record<string, unknown> },
): UseRequest {
  if (method !== undefined || body !== undefined) {
    throw badRequest('method and body must be absent where tool is there')
  }
  if (losesDigits(given)) throw badRequest(`tool.arguments must ${DIGITS_RULE}`)
  return { method: 'POST', url, headers, body: JSON.stringify(given) }
}

/**
 * Checks the HTTP request of a purchase, and returns the target of the request. @throws {ApiError} 400 with the name of
 * the wrong field.
 */
function targetOf(request: UseRequest, allowLoopback: boolean): UseTarget {
  try {
    return checkUseRequest(request, { allowLoopback })
  } catch (error) {
    if (!(error instanceof CredentialInputError)) throw error
    throw badRequest(error.message.replace(/^request\./, ''))
  }
}

function orBadAmount(amount: string): bigint {
  try {
    return parseUsdc(amount)
  } catch (error) {
    throw badRequest(`maxAmount: ${(error as Error).message}`)
  }
}

/**
 * Handles the route GET /v0/purse/payments/{purchaseId}, which reads a purchase. The function waits at most `waitMs`
 * for the end of the purchase.
 * @param untilAsked tells whether the call also returns as soon as the purchase must wait for the owner's approval.
 * @throws {ApiError} 403 for a missing scope, 404 for an unknown purchase.
 */
export async function readPurchase(
  { pool, keyring: source, waiters }: Buying,
  caller: Caller,
  { id, waitMs, untilAsked = false }: { id: string; waitMs: number; untilAsked?: boolean },
): Promise<PurchaseView> {
  if (!caller.scopes.includes('purse:pay')) requireScope(caller, 'purse:read')
  const { projectId } = caller
  const deadlineMs = performance.now() + waitMs
  const keyring = await source(pool)
  const watch = waiters.watch(id)
  try {
    for (;;) {
      const found = await findPurchase(pool, { projectId, id, keyring })
      if (found === null) throw notFound('Purchase not found')
      const isDone = hasEnded(found) || (untilAsked && found.state === 'waiting')
      if (isDone || !(await watch.changed(deadlineMs))) return toPurchaseView(found)
    }
  } finally {
    watch.close()
  }
}

/** Returns the purse (the payment wallet) of a project. @throws {ApiError} 404 if the project has no purse. */
export async function readPurse(
  { pool }: Pick<Services, 'pool'>,
  projectId: string,
): Promise<Static<typeof PurseSchema>> {
  const purse = await findPurse(pool, projectId)
  if (purse === null) throw notFound('The project has no purse')
  return toPurseView(purse)
}
