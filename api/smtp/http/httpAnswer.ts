import { ApiError } from '../../http/errors.ts'
import { SmtpReply } from '../acceptance.ts'

/** Sets after how many seconds a mail service may send the same mail again if the response had status 503. */
const RETRY_S = 30

/** Maps HTTP statuses to the error codes of docs/contract.md §2 that the routes for mail over HTTP use. */
const CODES: Record<number, string> = {
  400: 'bad_request',
  401: 'unauthorized',
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'payload_too_large',
  500: 'internal_error',
  503: 'unavailable',
}

/** Describes an error response to a mail service, with a body of the form `{error, message, status}`. */
export class HttpRefusal extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/**
 * Turns an SMTP reply (RFC 5321) into the corresponding HTTP error. The SMTP reply 552 becomes the HTTP status 413,
 * other 5xx replies become 404, and 4xx replies become 503.
 */
function refusalOf({ responseCode, message }: SmtpReply): HttpRefusal {
  if (responseCode === 552) return new HttpRefusal(413, message)
  if (responseCode >= 500) return new HttpRefusal(404, message)
  return new HttpRefusal(503, message)
}

export function refusalResponse({ status, message }: HttpRefusal): Response {
  return Response.json(
    { error: CODES[status] ?? 'bad_request', message, status },
    { status, headers: status === 503 ? { 'retry-after': String(RETRY_S) } : {} },
  )
}

/**
 * Returns the HTTP error that the mail service gets for an exception. Null means an unexpected exception, whose text
 * the mail service may not see.
 */
export function toRefusal(error: unknown): HttpRefusal | null {
  if (error instanceof HttpRefusal) return error
  if (error instanceof SmtpReply) return refusalOf(error)
  if (error instanceof ApiError) return new HttpRefusal(error.status, error.message)
  return null
}
