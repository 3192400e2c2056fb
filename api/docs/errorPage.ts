import type { ErrorCode } from '../http/errors.ts'

/** Describes each error code: its HTTP statuses, its meaning, and what a client should do after the error. */
const ERRORS: Record<ErrorCode, { status: string; meaning: string; remedy: string }> = {
  bad_request: {
    status: '400',
    meaning: 'An input is invalid. `message` names the field and what it must be.',
    remedy: 'Change the request.',
  },
  unauthorized: {
    status: '401',
    meaning: 'The key is missing, malformed, unknown or revoked.',
    remedy: 'Send `Authorization: Bearer <key>` with a valid key.',
  },
  forbidden: {
    status: '403',
    meaning: 'The key lacks the scope that `message` names, or is of the other kind.',
    remedy: 'Ask the operator for a key with that scope.',
  },
  not_found: {
    status: '404',
    meaning: 'The thing does not exist, or belongs to another project.',
    remedy: 'Check the id. An id goes into the path percent-encoded.',
  },
  method_not_allowed: {
    status: '405',
    meaning: 'The path exists, and not with this method.',
    remedy: 'Use a method of the `Allow` header.',
  },
  conflict: {
    status: '409',
    meaning: 'The `Idempotency-Key` was used for another request, or the name or address is taken.',
    remedy: 'Use a new key for a new request, or another name.',
  },
  expired: {
    status: '410',
    meaning:
      'A credential is past its `expiresAt`, the original of a mail is no longer kept, or an approval request expired.',
    remedy: 'Store a new credential with PUT. The parsed message remains readable.',
  },
  request_timeout: {
    status: '408',
    meaning: 'The body arrived too slowly.',
    remedy: 'Send it again, on a faster connection.',
  },
  payload_too_large: {
    status: '413',
    meaning: 'The body, or the attachment to be shown, is too large.',
    remedy: 'Send less.',
  },
  unsupported_media_type: {
    status: '415',
    meaning: 'The body is not JSON.',
    remedy: 'Send JSON with `Content-Type: application/json`.',
  },
  recipient_blocked: {
    status: '422',
    meaning: 'A rule forbids every recipient, or all of them bounced before.',
    remedy: 'Change the recipients or the rules. `GET /v0/suppressions` lists bounced addresses.',
  },
  rate_limited: {
    status: '429',
    meaning: 'Too many requests a minute.',
    remedy: 'Wait for the seconds of `Retry-After`.',
  },
  quota_exceeded: {
    status: '413, 429',
    meaning:
      'The storage (413) or a daily limit (429) of the project is used up. `message` names it.',
    remedy: 'Wait for the seconds of `Retry-After`, delete mail, or ask the operator for more.',
  },
  internal_error: {
    status: '500',
    meaning: 'Something went wrong. `message` has the request id.',
    remedy: 'Try again. Tell the operator the request id.',
  },
  content_lost: {
    status: '500',
    meaning:
      'A large part of a mail is damaged or missing in the object store. The rest of the mail can be read.',
    remedy: 'Tell the operator the request id: a backup of the store may hold it.',
  },
  unavailable: {
    status: '503',
    meaning: 'The database is away, or the caller has too many large requests at once.',
    remedy: 'Wait for the seconds of `Retry-After`, and repeat under the same `Idempotency-Key`.',
  },
}

/** Returns the page that explains each error code once. */
export function errorPage(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { status, meaning, remedy }]) => `| \`${code}\` | ${status} | ${meaning} | ${remedy} |`,
  )
  return [
    '# Errors',
    '',
    'Every error is `{error, message, status}`. Programs read `error`; `message` is for people and models.',
    '',
    '| `error` | status | meaning | remedy |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}
