/**
 * Checks the host of a request with a secret. An allowed host is an exact host, or any name below a domain
 * (`*.example.com`).
 */
import type { Meet } from './narrowing.ts'

/** Sets the maximum number of allowed hosts of one credential. */
export const ALLOWED_HOSTS_MAX = 20
const ENTRY_MAX_LENGTH = 260
/**
 * Matches an allowed host with a wildcard. The pattern refuses a wildcard directly before a top-level label (`*.com`),
 * because such a wildcard would allow everybody's hosts.
 */
const WILDCARD = /^\*\.(?=[^.]+\.)(.+)$/

/** Names the party that may read the value of a credential: either the agent, or only the owner. */
export const REVEALS = ['agent', 'owner'] as const
export type Reveal = (typeof REVEALS)[number]

/** Describes in words the format of an allowed host, for error messages. */
export const ALLOWED_HOST_RULE =
  'be a host such as api.example.com, *.example.com or api.example.com:8443, without scheme and path'

/**
 * Returns the host of an https URL as the property `URL.host` shows it: in lower case and without the default port.
 * @returns null if the text is no https URL.
 */
function httpsHost(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { protocol, host } = new URL(text)
  return protocol === 'https:' && host !== '' ? host : null
}

/**
 * Returns the canonical form of an allowed host of a credential. @returns null if the text is malformed.
 *
 * @example parseAllowedHost('API.Example.com:443') // 'api.example.com'
 */
export function parseAllowedHost(text: string): string | null {
  if (text.length > ENTRY_MAX_LENGTH) return null
  const [, below] = WILDCARD.exec(text) ?? []
  const name = below ?? text
  if (name === '' || /[\s/?#@\\*%]/.test(name)) return null
  const host = httpsHost(`https://${name}/`)
  if (host === null || host.endsWith('.')) return null
  // The function refuses a wildcard before an IP address, because no host name can stand below an IP address.
  if (below !== undefined && (host.startsWith('[') || /^[\d.]+(?::\d+)?$/.test(host))) return null
  return below === undefined ? host : `*.${host}`
}

/** Returns the allowed hosts of a credential: the credential's own list, or the host of `metadata.uri`. */
export function effectiveHosts(
  allowedHosts: readonly string[] | null,
  metadata: Record<string, unknown>,
): readonly string[] {
  if (allowedHosts !== null) return allowedHosts
  const host = typeof metadata.uri === 'string' ? httpsHost(metadata.uri) : null
  return host === null ? [] : [host]
}

const isWildcard = (entry: string) => entry.startsWith('*.')

/**
 * Tells whether the allowed host `wide` allows every host that the allowed host `narrow` allows. An exact allowed host
 * never includes an allowed host with a wildcard.
 */
const covers = (wide: string, narrow: string): boolean => {
  if (!isWildcard(wide)) return wide === narrow
  return (isWildcard(narrow) ? narrow.slice(1) : narrow).endsWith(wide.slice(1))
}

/**
 * Returns the narrower of two allowed hosts. Two allowed hosts have no host in common, unless one allowed host includes
 * the other.
 */
export const meetHosts: Meet = (one, other) =>
  covers(other, one) ? one : covers(one, other) ? other : null

/** Tells whether one of the allowed hosts covers a given host with its port, as the property `URL.host` shows it. */
export const isAllowedHost = (entries: readonly string[], host: string): boolean =>
  entries.some((entry) => covers(entry, host))
