import { SmtpReply } from '../acceptance.ts'

/** Seconds after which a refused sender may try again. */
const RETRY_S = 30

/** The error codes of docs/contract.md §2 that mail over HTTP uses. */
const CODES: Record<number, string> = {
  400: 'bad_request',
  401: 'unauthorized',
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'payload_too_large',
  500: 'internal_error',
  503: 'unavailable',
}

/** An answer to a sender: `{error, message, status}`. */
export class HttpRefusal extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** The refusal that says the same as an SMTP reply (RFC 5321): 552 is 413, 550 is 404, and 4xx is 503. */
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

/** What the sender may know of any error. */
export function toRefusal(error: unknown): HttpRefusal | null {
  if (error instanceof HttpRefusal) return error
  if (error instanceof SmtpReply) return refusalOf(error)
  return null
}
