/**
 * Lists the headers from which some servers take the host or the path of a request. Rack reads `Forwarded` and
 * `X-Forwarded-Host` by default. Code that judges a request by its real host and path refuses or removes these headers.
 */
export const REPLACING_HEADERS = [
  ...['forwarded', 'x-forwarded-host', 'x-forwarded-server'],
  ...['x-host', 'x-http-host-override', 'x-original-host'],
  ...['x-original-url', 'x-rewrite-url', 'x-original-uri'],
  ...['x-forwarded-prefix', 'x-forwarded-path', 'x-forwarded-uri'],
] as const
