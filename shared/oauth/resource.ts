/** Names the resource for which OAuth tokens are valid, and the server that issues the tokens (RFC 8707, RFC 9728). */

/**
 * Tells whether OAuth is on for this service. OAuth needs TLS, because chat hosts refuse OAuth without TLS. At a
 * loopback host, OAuth is also on without TLS, for tests and development.
 */
export const isOAuthOn = (baseUrl: string): boolean =>
  baseUrl.startsWith('https://') ||
  /^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d+)?$/.test(baseUrl)

export const mcpResource = (baseUrl: string): string => `${baseUrl}/mcp`

/**
 * Tells whether a URL identifies this service's MCP server as an OAuth resource. The URL may have the query `names`
 * that a person typed, because a client keeps this query. It may also end with a slash, because some clients add one.
 */
export const isMcpResource = (resource: string, baseUrl: string): boolean =>
  resource.replace(/\?names=(?:dotted|underscore)$/, '').replace(/\/$/, '') === mcpResource(baseUrl)

/**
 * Returns the URL of the metadata document that tells an OAuth client how to get a token. The parameter
 * `resource_metadata` of the header `WWW-Authenticate` holds this URL.
 */
export const resourceMetadataUrl = (baseUrl: string): string =>
  `${baseUrl}/.well-known/oauth-protected-resource/mcp`
