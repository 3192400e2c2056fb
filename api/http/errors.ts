import { BlobsAwayError } from '../../shared/blobs/objectStore.ts'
import { errorCode } from '../../shared/errorCode.ts'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { ProjectGoneError } from '../../sql/account/projects/holdProject.ts'
import { LostObjectError } from '../../sql/blobs/sealedBlob.ts'
import { isGivenUp } from '../../sql/db.ts'

/** Lists the error codes of the API (docs/contract.md §2). */
export type ErrorCode =
  | 'bad_request'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'expired'
  | 'request_timeout'
  | 'payload_too_large'
  | 'unsupported_media_type'
  | 'recipient_blocked'
  | 'rate_limited'
  | 'quota_exceeded'
  | 'internal_error'
  | 'content_lost'
  | 'unavailable'

/**
 * Describes an error that the API client sees, with its HTTP headers, and with a body that contains status, code and
 * message.
 */
export class ApiError extends Error {
  readonly status: number
  readonly code: ErrorCode
  readonly headers: Record<string, string>

  constructor(
    status: number,
    code: ErrorCode,
    message: string,
    headers: Record<string, string> = {},
  ) {
    super(message)
    this.status = status
    this.code = code
    this.headers = headers
  }
}

/**
 * Makes an error response with status 400. Its message names the wrong field and states which values the field may
 * have.
 */
export const badRequest = (message: string) => new ApiError(400, 'bad_request', message)

/** Reports with status 400 that the request body is not JSON. */
export class InvalidJsonError extends ApiError {
  constructor() {
    super(400, 'bad_request', 'The body must be valid JSON')
  }
}

/** Makes an error response with status 404. Its message names the missing object. */
export const notFound = (message = 'Not found') => new ApiError(404, 'not_found', message)

/**
 * Makes an error response with status 410 for a message whose bytes were removed after the project's retention time.
 */
export const originalGone = () =>
  new ApiError(410, 'expired', 'The original of this message is no longer kept')

/** Makes an error response with status 409. */
export const conflict = (message: string) => new ApiError(409, 'conflict', message)

/**
 * Holds the SQLSTATE with which PostgreSQL refuses a write on a full disk. PostgreSQL still answers reads while the
 * disk is full.
 */
const DISK_FULL = '53100'
/**
 * Holds for how many milliseconds the service reports a full database disk after a write has failed for lack of disk
 * space.
 */
const DISK_FULL_SHOWN_MS = 10_000
let diskFullMs = Number.NEGATIVE_INFINITY

/** Tells whether a recent request failed because the database's disk was full. */
export const isDiskFull = (): boolean => performance.now() - diskFullMs < DISK_FULL_SHOWN_MS

/**
 * Sets how many seconds a client must wait (Retry-After) while the database is unreachable, or after the database has
 * cancelled a statement.
 */
const UNAVAILABLE_RETRY_S = 2

/** Tells whether an HTTP request failed because the database or the object store is unreachable. */
export const isUnavailable = (error: unknown): boolean =>
  isDatabaseUnavailable(error) || error instanceof BlobsAwayError

/**
 * Turns a thrown error into the error that the API client sees. Only an ApiError tells the client more than the request
 * id, because a stack trace, an SQL text or a path would help an attacker.
 */
export function toApiError(error: unknown, requestId: string): ApiError {
  if (error instanceof ApiError) return error
  if (isUnavailable(error) || isGivenUp(error)) {
    if (errorCode(error) === DISK_FULL) diskFullMs = performance.now()
    return new ApiError(503, 'unavailable', 'The service is temporarily unavailable', {
      'retry-after': String(UNAVAILABLE_RETRY_S),
    })
  }
  if (error instanceof ProjectGoneError) return new ApiError(401, 'unauthorized', 'Invalid API key')
  if (error instanceof LostObjectError) {
    return new ApiError(
      500,
      'content_lost',
      `A part of this mail is damaged or missing in the object store; its operator may restore it (request ${requestId})`,
    )
  }
  return new ApiError(500, 'internal_error', `Something went wrong (request ${requestId})`)
}

/** Returns a response with the error body `{error, message, status}`. */
export function errorResponse(error: ApiError): Response {
  return Response.json(
    { error: error.code, message: error.message, status: error.status },
    { status: error.status, headers: error.headers },
  )
}
