/** What a viewer's answers leave out. */

/** Addresses of webhooks: their path or query is often a secret, as that of a chat's webhook is. */
const HOOKS = new Set(['url', 'webhookUrl'])

/** The answer with only the host of each webhook. Files, exports and answers without a body stay as they are. */
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
