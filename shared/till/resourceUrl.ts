/**
 * Parses resource URLs, and compares a registered URL with a requested URL.
 *
 * Two URLs name the same resource if three parts agree: the host without regard to case, the port (or the default port
 * of the scheme), and the path. Two paths agree if they differ only in the percent-encoding of unreserved characters, or
 * in the letter case of a percent-encoding (RFC 3986 §6.2.2). The comparison ignores the scheme, because Express and Hono
 * behind a TLS proxy report http.
 */
import { normalEncoding } from '../http/normalUrl.ts'

const URL_CHARS_MAX = 2048

/** Reports a URL that cannot be a paid resource. The service may show the error's `message` to the caller. */
export class ResourceUrlError extends Error {
  override readonly name = 'ResourceUrlError'
}

export type ResourceUrl = {
  /** Holds the normal form of the URL with a lower-case host and without default port, query and fragment. */
  readonly url: string
  /**
   * Holds the text for the comparison of two resources: `host[:port]/path`, or the whole URI of an MCP tool. Two URLs
   * with equal match keys name the same resource.
   */
  readonly matchKey: string
}

/**
 * Parses and normalises a resource URL.
 *
 * @param text is an absolute http(s) URL of at most 2,048 characters, without user or password.
 * @throws ResourceUrlError. The error's message describes the fault without the name of the request field.
 *
 * @example
 * parseResourceUrl('HTTPS://API.Example.com:443/a?x=1#y')
 * // { url: 'https://api.example.com/a', matchKey: 'api.example.com/a' }
 */
export function parseResourceUrl(text: string): ResourceUrl {
  if (text.length > URL_CHARS_MAX) {
    throw new ResourceUrlError(`must be at most ${URL_CHARS_MAX} characters`)
  }
  // The function refuses control characters, blanks and `\`. The URL parser drops tabs and line ends, and turns `\`
  // into `/`. Therefore two programs could read such a text as two different URLs.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
  if (/[\u0000-\u0020\u007f\\]/.test(text)) {
    throw new ResourceUrlError('must not hold blanks, control characters or backslashes')
  }
  // Without this check, the URL parser would accept `https:host` as `https://host`.
  if (!/^https?:\/\//i.test(text)) {
    throw new ResourceUrlError('must be an absolute http or https URL')
  }
  if (!URL.canParse(text)) throw new ResourceUrlError('must be a valid URL')
  const parsed = new URL(text)
  if (parsed.username !== '' || parsed.password !== '') {
    throw new ResourceUrlError('must not hold a user name or password')
  }
  const path = normalEncoding(parsed.pathname)
  const url = `${parsed.origin}${path}`
  // The function checks the length again on the stored form of the URL, because percent-encoding can triple the length.
  if (url.length > URL_CHARS_MAX) {
    throw new ResourceUrlError(`must be at most ${URL_CHARS_MAX} characters`)
  }
  return { url, matchKey: `${parsed.host}${path}` }
}

/**
 * Matches the URI that names an MCP tool as a paid resource. Tool names of MCP 2025-11-25 have at most 128 letters,
 * digits and `_-./`.
 */
const MCP_TOOL = /^mcp:\/\/tool\/[A-Za-z0-9_./-]{1,128}$/

/** Tells whether a paid resource is an MCP tool. An MCP tool has no URL that the service could request. */
export const isMcpTool = (resource: string): boolean => MCP_TOOL.test(resource)

/**
 * Parses the resource of a payment: an http(s) URL, or an MCP tool as `mcp://tool/NAME`. The signed receipt of the
 * payment holds the resource.
 *
 * @throws ResourceUrlError. The error's message describes the fault without the name of the request field.
 */
export function parsePaidResource(text: string): ResourceUrl {
  if (isMcpTool(text)) return { url: text, matchKey: text }
  if (!/^mcp:/i.test(text)) return parseResourceUrl(text)
  throw new ResourceUrlError(
    'must be mcp://tool/NAME for an MCP tool, with a name of 1 to 128 letters, digits and _-./',
  )
}
