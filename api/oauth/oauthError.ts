/** Lists the errors of an OAuth endpoint (RFC 6749 §5.2, RFC 7591 §3.2.2, RFC 8707 §2). */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'invalid_target'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'access_denied'
  | 'invalid_redirect_uri'
  | 'invalid_client_metadata'
  | 'temporarily_unavailable'

export class OAuthError extends Error {
  readonly code: OAuthErrorCode
  readonly status: number
  constructor(code: OAuthErrorCode, message: string, status = 400) {
    super(message)
    this.code = code
    this.status = status
  }
}

const HEADERS = { 'cache-control': 'no-store' }

/** Returns the result of an OAuth endpoint as JSON. Returns an OAuth error as `{error, error_description}`. */
export async function answerOAuth(
  work: () => Promise<{ status?: number; body: unknown }>,
): Promise<Response> {
  try {
    const { status = 200, body } = await work()
    return Response.json(body, { status, headers: HEADERS })
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return Response.json(
      { error: error.code, error_description: error.message },
      { status: error.status, headers: HEADERS },
    )
  }
}
