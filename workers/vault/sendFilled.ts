import type { UseAnswer } from '../../shared/vault/useAnswer.ts'
import type { FilledRequest } from '../../shared/vault/useRequest.ts'
import type { UseEnd } from '../../sql/vault/uses.ts'
import { type Exchange, guardedExchange, type OutboundPolicy } from '../http/guardedRequest.ts'
import { ANSWER_BYTES_MAX, type ReceivedAnswer } from './maskedAnswer.ts'

const TIMEOUT_MS = 30_000

/**
 * Sends an HTTP request with its secret filled in, and masks the response. Follows no redirect, and returns a response
 * with a Location header like any other response.
 * @param mask is the function that masks the request's secrets in the response.
 */
export async function sendFilled(
  policy: OutboundPolicy & { ca?: string },
  { url, method, headers, body, secrets }: FilledRequest,
  mask: (answer: ReceivedAnswer, secrets: readonly string[]) => Promise<UseAnswer>,
): Promise<UseEnd> {
  const answer = await guardedExchange({
    ...policy,
    url,
    method,
    headers,
    timeoutMs: TIMEOUT_MS,
    responseBytesMax: ANSWER_BYTES_MAX,
    ...(body === null ? {} : { body }),
  })
  if (!answer.ok) return unanswered(answer)
  return { state: 'answered', answer: await mask(answer, secrets) }
}

type Failed = Extract<Exchange, { ok: false }>

/** Matches the errors of a connection over which no request has been sent. */
const NOT_SENT =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH)$|CERT|TLS|SSL|SIGNATURE/

/**
 * Tells whether the server surely did not get a failed request. A failed handshake alone does not prove this, because a
 * server can break TLS with the same error after the handshake.
 */
export const wasNotSent = ({ kind, detail, secured }: Failed): boolean =>
  kind === 'blocked' || (kind === 'network' && secured !== true && NOT_SENT.test(detail))

function unanswered(answer: Failed): UseEnd {
  const { detail } = answer
  if (wasNotSent(answer)) return { state: 'failed', error: detail }
  return { state: 'unknown', error: `${detail}; the server may have acted` }
}
