/** Implements the vault operations that use a secret without showing it, for both REST and MCP. */

import { OutOfBoundsError } from '../../shared/vault/bounds/bounds.ts'
import type { UseMethod } from '../../shared/vault/bounds/useMethods.ts'
import { CredentialInputError, checkName } from '../../shared/vault/credential.ts'
import { checkUseRequest, fillRequest, type UseRequest } from '../../shared/vault/useRequest.ts'
import { DIGITS_RULE, losesDigits } from '../../shared/wholeNumbers.ts'
import { acceptUse } from '../../sql/vault/acceptUse.ts'
import type { OpenCredential } from '../../sql/vault/credentialReads.ts'
import { findUse, type Use } from '../../sql/vault/uses.ts'
import { ApiError, badRequest, notFound } from '../http/errors.ts'
import { keyOfAnother, requestHash } from '../http/input/idempotencyKey.ts'
import type { Caller } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { failure, orBadRequest, requireScope } from './vault.ts'

type Vault = Pick<Services, 'pool' | 'keyring' | 'waiters' | 'config'>

/**
 * Describes the HTTP request that a caller wants to send with a secret. If the request body is an object, the service
 * sends the body as JSON.
 */
export type GivenRequest = {
  method?: UseMethod
  url: string
  headers?: Record<string, string>
  body?: unknown
}

const RETRY_S = 5

/**
 * Handles POST /v0/vault/{name}/use, which sends a request with a secret. The function waits at most `waitMs` until the
 * service has sent the request and got the response.
 * @param key is the Idempotency-Key of the call.
 */
export async function useCredential(
  services: Vault,
  caller: Caller,
  name: string,
  { given, key, waitMs }: { given: GivenRequest; key: string | null; waitMs: number },
) {
  requireScope(caller, 'vault:use')
  orBadRequest(() => checkName(name))
  const request = readRequest(given)
  const allowLoopback = services.config.allowPrivateNetworks
  const target = orBadRequest(() => checkUseRequest(request, { allowLoopback }))
  const keyring = await services.keyring(services.pool)
  const accepted = await acceptUse(services.pool, {
    actor: caller,
    keyring,
    name,
    request,
    target,
    idempotency: key === null ? null : { key, hash: requestHash({ name, request }) },
    judge: judgeFilling(name, request),
  })
  switch (accepted.kind) {
    case 'ok':
      return waitForUse(services, { caller, name, id: accepted.id, waitMs })
    case 'other_request':
      throw keyOfAnother()
    case 'busy':
      throw new ApiError(
        429,
        'rate_limited',
        'The project has too many uses under way, or too many answers kept',
        { 'retry-after': String(RETRY_S) },
      )
    case 'no_project':
      throw new ApiError(401, 'unauthorized', 'Invalid API key')
    case 'refused_by_judge':
      throw accepted.refusal
    default:
      throw failure(name, accepted, '')
  }
}

/**
 * Returns a function that decides whether the limits on a credential allow the service to fill the secret into an HTTP
 * request.
 */
export const judgeFilling =
  (name: string, request: UseRequest) =>
  (credential: OpenCredential): ApiError | null => {
    try {
      fillRequest(request, credential, Date.now())
      return null
    } catch (error) {
      if (error instanceof OutOfBoundsError) return outOfBounds(name, error)
      if (error instanceof CredentialInputError) return badRequest(error.message)
      throw error
    }
  }

/** Makes the 403 error for an HTTP request that the limits on a credential forbid. */
export const outOfBounds = (name: string, { message }: OutOfBoundsError) =>
  new ApiError(403, 'forbidden', `Credential "${name}" ${message}`)

/** Handles GET /v0/vault/{name}/uses/{useId}, which returns the record of a request with a secret. */
export function readUse(
  services: Vault,
  caller: Caller,
  name: string,
  { id, waitMs }: { id: string; waitMs: number },
) {
  requireScope(caller, 'vault:use')
  return waitForUse(services, { caller, name, id, waitMs })
}

async function waitForUse(
  { pool, keyring: source, waiters }: Vault,
  wanted: { caller: Caller; name: string; id: string; waitMs: number },
) {
  const { caller, name, id, waitMs } = wanted
  const { projectId } = caller
  const deadlineMs = performance.now() + waitMs
  const keyring = await source(pool)
  const watch = waiters.watch(id)
  try {
    for (;;) {
      const use = await findUse(pool, { projectId, id, keyring })
      if (use === null || use.name !== name) throw notFound('Use not found, or older than its time')
      if (hasEnded(use) || !(await watch.changed(deadlineMs))) return toUse(use)
    }
  } finally {
    watch.close()
  }
}

const hasEnded = ({ state }: Use): boolean => state !== 'queued' && state !== 'sending'

/** Returns the record of a request with a secret in the form in which its caller sees it. */
const toUse = (use: Use) => ({
  useId: use.id,
  name: use.name,
  state: hasEnded(use) ? use.state : ('pending' as const),
  response: use.answer,
  error: use.error,
  createdAt: use.createdAt.toISOString(),
  expiresAt: use.expiresAt.toISOString(),
})

/**
 * Returns the request with its body as text. @throws {ApiError} 400 for a JSON body with a number that has lost digits
 * during parsing.
 * @param field is the name that the error message gives to the body.
 */
export function readRequest(
  { method, url, headers = {}, body }: GivenRequest,
  field = 'request.body',
): UseRequest {
  if (losesDigits(body)) throw badRequest(`${field} must ${DIGITS_RULE}`)
  const isText = typeof body === 'string'
  const hasType = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')
  const isJson = body !== undefined && body !== null && !isText
  return {
    method: method ?? (body === undefined || body === null ? 'GET' : 'POST'),
    url,
    headers: isJson && !hasType ? { ...headers, 'content-type': 'application/json' } : headers,
    body: isText ? body : isJson ? JSON.stringify(body) : null,
  }
}
