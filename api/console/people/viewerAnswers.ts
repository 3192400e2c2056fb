/** What a viewer's answers leave out. */

/** Addresses of webhooks: their path or query is often a secret, as that of a chat's webhook is. */
const HOOKS = new Set(['url', 'webhookUrl'])

/** The answer with only the host of each webhook. */
export async function withoutHookSecrets(response: Response): Promise<Response> {
  if (!response.headers.get('content-type')?.includes('json')) return response
  const body = hideHooks(await response.json())
  const { status, headers } = response
  headers.delete('content-length')
  return new Response(JSON.stringify(body), { status, headers })
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
