/** The hosts that a request with a secret may reach: an exact host, or every name below one (`*.example.com`). */

/** Most entries of one credential. */
export const ALLOWED_HOSTS_MAX = 20
const ENTRY_MAX_LENGTH = 260
/** A wildcard over a single label (`*.com`) would allow strangers. */
const WILDCARD = /^\*\.(?=[^.]+\.)(.+)$/

/** Who reads the secret of a credential. */
export const REVEALS = ['agent', 'owner'] as const
export type Reveal = (typeof REVEALS)[number]

/** How an entry must look, for error messages. */
export const ALLOWED_HOST_RULE =
  'be a host such as api.example.com, *.example.com or api.example.com:8443, without scheme and path'

/** The host of an https URL as `URL` writes it: lower case, no default port; null: the text is no such URL. */
function httpsHost(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { protocol, host } = new URL(text)
  return protocol === 'https:' && host !== '' ? host : null
}

/**
 * The canonical form of an entry; null: it is none.
 *
 * @example
 * parseAllowedHost('API.Example.com:443') // 'api.example.com'
 */
export function parseAllowedHost(text: string): string | null {
  if (text.length > ENTRY_MAX_LENGTH) return null
  const [, below] = WILDCARD.exec(text) ?? []
  const name = below ?? text
  if (name === '' || /[\s/?#@\\*%]/.test(name)) return null
  const host = httpsHost(`https://${name}/`)
  if (host === null || host.endsWith('.')) return null
  // Nothing is below an address.
  if (below !== undefined && (host.startsWith('[') || /^[\d.]+(?::\d+)?$/.test(host))) return null
  return below === undefined ? host : `*.${host}`
}

/** The entries of a credential: its own, or the host of `metadata.uri`. */
export function effectiveHosts(
  allowedHosts: readonly string[] | null,
  metadata: Record<string, unknown>,
): readonly string[] {
  if (allowedHosts !== null) return allowedHosts
  const host = typeof metadata.uri === 'string' ? httpsHost(metadata.uri) : null
  return host === null ? [] : [host]
}

/** Tests a host with its port, in the form of `URL.host`, against one entry. */
const allows = (entry: string, host: string): boolean =>
  entry.startsWith('*.') ? host.endsWith(entry.slice(1)) : host === entry

/** Tests a host with its port, in the form of `URL.host`, against every entry. */
export const isAllowedHost = (entries: readonly string[], host: string): boolean =>
  entries.some((entry) => allows(entry, host))

/** Whether `wanted` allows no host that `present` does not allow. */
export const isNarrower = (wanted: readonly string[], present: readonly string[]): boolean =>
  wanted.every((entry) =>
    present.some(
      (other) =>
        other === entry ||
        allows(other, entry.startsWith('*.') ? entry.slice(2) : entry) ||
        (entry.startsWith('*.') && other.startsWith('*.') && entry.endsWith(other.slice(1))),
    ),
  )
