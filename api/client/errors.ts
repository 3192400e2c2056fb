/** Serves as the base class of all errors of the client. */
export class PurserError extends Error {
  override readonly name: string = 'PurserError'
}

/**
 * Reports that the client could not connect to the service, or that the connection broke. The service may have carried
 * out the call nevertheless.
 */
export class ConnectionError extends PurserError {
  override readonly name = 'ConnectionError'
}

/** Reports that no response came within `timeoutMs`. The service may have carried out the call nevertheless. */
export class TimeoutError extends PurserError {
  override readonly name = 'TimeoutError'
}

/**
 * Reports that the seller configured a paywall wrongly: a wrong key, a missing scope, or an unregistered endpoint. The
 * field `cause` holds the error that the service returned. A PaywallError has no field `status`, because web frameworks
 * would send this status to the payer.
 */
export class PaywallError extends PurserError {
  override readonly name = 'PaywallError'
}

/** Reports that the service returned an error. */
export class ApiError extends PurserError {
  override readonly name: string = 'ApiError'
  /** Holds the HTTP status of the response. */
  readonly status: number
  /** Holds the error code that the service returned, such as `bad_request`. */
  readonly code: string
  /** Holds the id of the request. Tell it to the operator of the service when you ask about the request. */
  readonly requestId: string | null
  /** Holds the complete body of the HTTP response. */
  readonly body: Readonly<Record<string, unknown>>
  /**
   * Tells whether the service may have carried out the call nevertheless, because the response to an earlier attempt of
   * the call was lost.
   */
  readonly mayBeDone: boolean

  constructor(answer: ErrorAnswer) {
    super(answer.message)
    this.status = answer.status
    this.code = answer.code
    this.requestId = answer.requestId
    this.body = answer.body
    this.mayBeDone = answer.mayBeDone ?? false
  }
}

export type ErrorAnswer = {
  status: number
  code: string
  message: string
  requestId: string | null
  body: Record<string, unknown>
  /** Holds the number of seconds in the header Retry-After. */
  retryAfterS: number | null
  /** Tells whether an earlier attempt of the call may have reached the service although its response was lost. */
  mayBeDone?: boolean
}

/** Reports an HTTP status of 400, 413, 415 or 422. The field `message` names the mistake in the call. */
export class BadRequestError extends ApiError {
  override readonly name = 'BadRequestError'
}

/** Reports an HTTP status of 401, which means that the API key is missing, malformed, unknown or revoked. */
export class AuthenticationError extends ApiError {
  override readonly name = 'AuthenticationError'
}

/**
 * Reports an HTTP status of 403, which means that the API key lacks a scope, or that the project has not enabled
 * payments.
 */
export class ForbiddenError extends ApiError {
  override readonly name = 'ForbiddenError'
}

/** Reports an HTTP status of 404, which means that the requested object does not exist. */
export class NotFoundError extends ApiError {
  override readonly name = 'NotFoundError'
}

/**
 * Reports an HTTP status of 409, which means that an idempotency key was used for another request, or that a name is
 * already taken.
 */
export class ConflictError extends ApiError {
  override readonly name = 'ConflictError'
}

/** Reports an HTTP status of 410, which means that the credential has expired. */
export class ExpiredError extends ApiError {
  override readonly name = 'ExpiredError'
}

/**
 * Reports an HTTP status of 429. The client first retries the call. It throws this error after the last retry, or if
 * the required wait exceeds the time limit or the `retryAfterMaxMs` of the call.
 */
export class RateLimitError extends ApiError {
  override readonly name = 'RateLimitError'
  /**
   * Holds the number of seconds that the client must wait before a retry (Retry-After). The value `null` means that the
   * response names no time to wait.
   */
  readonly retryAfterS: number | null
  constructor(answer: ErrorAnswer) {
    super(answer)
    this.retryAfterS = answer.retryAfterS
  }
}

/** Reports an HTTP status of 500 or above. */
export class ServerError extends ApiError {
  override readonly name = 'ServerError'
  /**
   * Holds the number of seconds that the client must wait before a retry (Retry-After). The value `null` means that the
   * response names no time to wait.
   */
  readonly retryAfterS: number | null
  constructor(answer: ErrorAnswer) {
    super(answer)
    this.retryAfterS = answer.retryAfterS
  }
}

const BY_STATUS: Record<number, new (answer: ErrorAnswer) => ApiError> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  410: ExpiredError,
  413: BadRequestError,
  415: BadRequestError,
  422: BadRequestError,
  429: RateLimitError,
}

/** Makes the error object for an error response. */
export function errorOf(answer: ErrorAnswer): ApiError {
  const Class = BY_STATUS[answer.status] ?? (answer.status >= 500 ? ServerError : ApiError)
  return new Class(answer)
}
