/** Names the one resource that OAuth tokens are for, and the server that issues the tokens (RFC 8707, RFC 9728). */

/** Tells whether OAuth is on. Chat hosts refuse OAuth without TLS. A loopback host is for tests and development. */
export const isOAuthOn = (baseUrl: string): boolean =>
  baseUrl.startsWith('https://') ||
  /^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d+)?$/.test(baseUrl)

export const mcpResource = (baseUrl: string): string => `${baseUrl}/mcp`

/**
 * Tells whether a URL is the MCP resource. Clients keep the query of the URL that a person typed, and some add a slash.
 * All these URLs mean the same resource.
 */
export const isMcpResource = (resource: string, baseUrl: string): boolean =>
  resource.replace(/\?names=(?:dotted|underscore)$/, '').replace(/\/$/, '') === mcpResource(baseUrl)

/** Returns the URL where an OAuth client learns how to get a token. The URL is the value of `resource_metadata`. */
export const resourceMetadataUrl = (baseUrl: string): string =>
  `${baseUrl}/.well-known/oauth-protected-resource/mcp`
