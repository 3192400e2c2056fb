/** The one resource that tokens are for, and the server that gives them (RFC 8707, RFC 9728). */

/** Hosts refuse OAuth without TLS. A loopback host is for tests and development. */
export const isOAuthOn = (baseUrl: string): boolean =>
  baseUrl.startsWith('https://') ||
  /^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d+)?$/.test(baseUrl)

export const mcpResource = (baseUrl: string): string => `${baseUrl}/mcp`

/** Clients keep the query of the URL that a person typed, and some add a slash. All are one audience. */
export const isMcpResource = (resource: string, baseUrl: string): boolean =>
  resource.replace(/\?names=(?:dotted|underscore)$/, '').replace(/\/$/, '') === mcpResource(baseUrl)

/** Where a client finds out how to get a token; the value of `resource_metadata`. */
export const resourceMetadataUrl = (baseUrl: string): string =>
  `${baseUrl}/.well-known/oauth-protected-resource/mcp`
