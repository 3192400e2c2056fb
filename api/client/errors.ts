/** The base class of all errors of the client. */
export class PurserError extends Error {
  override readonly name: string = 'PurserError'
}

/** No connection, or a broken one. The service may or may not have carried out the call. */
export class ConnectionError extends PurserError {
  override readonly name = 'ConnectionError'
}

/** No answer within `timeoutMs`. The service may or may not have carried out the call. */
export class TimeoutError extends PurserError {
  override readonly name = 'TimeoutError'
}

/**
 * A configuration error of a paywall: a wrong key, a missing scope, or an unregistered endpoint; see `cause`. It has no
 * `status`: frameworks would send the status of the cause to the payer.
 */
export class PaywallError extends PurserError {
  override readonly name = 'PaywallError'
}

/** An error answer of the service. */
export class ApiError extends PurserError {
  override readonly name: string = 'ApiError'
  /** HTTP status. */
  readonly status: number
  /** The error's code, e.g. `bad_request`. */
  readonly code: string
  /** Identifies the request in questions to the operator of the service. */
  readonly requestId: string | null
  /** The whole body of the answer. */
  readonly body: Readonly<Record<string, unknown>>

  constructor(answer: ErrorAnswer) {
    super(answer.message)
    this.status = answer.status
    this.code = answer.code
    this.requestId = answer.requestId
    this.body = answer.body
  }
}

export type ErrorAnswer = {
  status: number
  code: string
  message: string
  requestId: string | null
  body: Record<string, unknown>
  /** Seconds, from Retry-After. */
  retryAfterS: number | null
}

/** 400, 413, 415, 422: `message` names the fault of the call. */
export class BadRequestError extends ApiError {
  override readonly name = 'BadRequestError'
}

/** 401: the key is missing, malformed, unknown or revoked. */
export class AuthenticationError extends ApiError {
  override readonly name = 'AuthenticationError'
}

/** 403: the key lacks a scope, or payments are not enabled for its project. */
export class ForbiddenError extends ApiError {
  override readonly name = 'ForbiddenError'
}

/** 404. */
export class NotFoundError extends ApiError {
  override readonly name = 'NotFoundError'
}

/** 409: an idempotency key used for another request, or a taken name. */
export class ConflictError extends ApiError {
  override readonly name = 'ConflictError'
}

/** 410: an expired credential. */
export class ExpiredError extends ApiError {
  override readonly name = 'ExpiredError'
}

/** 429; thrown when the wait exceeds the time limit of the call. */
export class RateLimitError extends ApiError {
  override readonly name = 'RateLimitError'
  /** The wait in seconds (Retry-After), or null. */
  readonly retryAfterS: number | null
  constructor(answer: ErrorAnswer) {
    super(answer)
    this.retryAfterS = answer.retryAfterS
  }
}

/** 5xx. */
export class ServerError extends ApiError {
  override readonly name = 'ServerError'
  /** The wait in seconds before a retry (Retry-After), or null. */
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

/** Makes the error of an answer. */
export function errorOf(answer: ErrorAnswer): ApiError {
  const Class = BY_STATUS[answer.status] ?? (answer.status >= 500 ? ServerError : ApiError)
  return new Class(answer)
}
