/** What can go wrong with a call, one class each; `instanceof PurserError` catches all of them. */
export class PurserError extends Error {
  override readonly name: string = 'PurserError'
}

/** The service could not be reached, or broke off. Whether the call was carried out is not known. */
export class ConnectionError extends PurserError {
  override readonly name = 'ConnectionError'
}

/** No answer within `timeoutMs`. Whether the call was carried out is not known. */
export class TimeoutError extends PurserError {
  override readonly name = 'TimeoutError'
}

/**
 * A paywall is set up wrongly: its key, its scope, an endpoint that is not registered; `cause` says which. It has no
 * `status`: frameworks would hand that of the cause to the payer, who cannot mend it.
 */
export class PaywallError extends PurserError {
  override readonly name = 'PaywallError'
}

/** The service answered, and the answer is an error. */
export class ApiError extends PurserError {
  override readonly name: string = 'ApiError'
  /** HTTP status. */
  readonly status: number
  /** The error's code, e.g. `bad_request`. */
  readonly code: string
  /** For questions to whoever runs the service. */
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

/** 400, 413, 415, 422: `message` names what is wrong with the call. */
export class BadRequestError extends ApiError {
  override readonly name = 'BadRequestError'
}

/** 401: the key is missing, malformed, or not known (any more). */
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

/** 409: an idempotency key that stands for another request, or a name that is taken. */
export class ConflictError extends ApiError {
  override readonly name = 'ConflictError'
}

/** 410: a credential past its time. */
export class ExpiredError extends ApiError {
  override readonly name = 'ExpiredError'
}

/** 429; thrown when waiting would take longer than the call may. */
export class RateLimitError extends ApiError {
  override readonly name = 'RateLimitError'
  /** Seconds until the next call is taken; null when the service did not say. */
  readonly retryAfterS: number | null
  constructor(answer: ErrorAnswer) {
    super(answer)
    this.retryAfterS = answer.retryAfterS
  }
}

/** 5xx. */
export class ServerError extends ApiError {
  override readonly name = 'ServerError'
  /** Seconds after which to try again; null when the service did not say. */
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

/** The error for an answer. */
export function errorOf(answer: ErrorAnswer): ApiError {
  const Class = BY_STATUS[answer.status] ?? (answer.status >= 500 ? ServerError : ApiError)
  return new Class(answer)
}
