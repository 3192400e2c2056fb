/** Removes from responses the data that a person with the role viewer may not see. */

/**
 * Names the response fields that contain webhook URLs. A viewer may not see a whole webhook URL, because its path or
 * query is often a secret, for example in the webhooks of a chat service.
 */
const HOOKS = new Set(['url', 'webhookUrl'])

/**
 * Reduces each webhook URL in a response to its host. Files, exports and responses without a body stay unchanged for a
 * viewer.
 */
export async function withoutHookSecrets(response: Response): Promise<Response> {
  const { status, headers, body } = response
  const isJson = /^application\/json\s*(?:;|$)/.test(headers.get('content-type') ?? '')
  if (!isJson || body === null || headers.has('content-disposition')) return response
  headers.delete('content-length')
  return new Response(JSON.stringify(hideHooks(await response.json())), { status, headers })
}

function hideHooks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(hideHooks)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      name,
      HOOKS.has(name) && typeof field === 'string' ? hostOf(field) : hideHooks(field),
    ]),
  )
}

const hostOf = (text: string): string => (URL.canParse(text) ? `${new URL(text).origin}/…` : '…')
