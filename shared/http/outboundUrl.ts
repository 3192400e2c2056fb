import { judgeHost } from './publicAddress.ts'

/**
 * Checks a URL that a tenant asks the service to call, and returns the fault of the URL. The check makes no DNS query.
 * The service checks the URL at registration and before every request.
 *
 * @param allowPrivate tells whether the function accepts private, loopback and link-local addresses and every port,
 * which is useful in development.
 * @returns a reason for the refusal, which the service may show to the tenant. Null means that the URL has no fault.
 */
export function outboundUrlFault(text: string, allowPrivate: boolean): string | null {
  if (!URL.canParse(text)) return 'not a valid URL'
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'not an http or https URL'
  if (url.username !== '' || url.password !== '') return 'URL holds a user name or password'
  if (allowPrivate) return null
  // The function checks an IP address that stands in the URL itself. The later check of the resolved addresses does not
  // see such an address, because it needs no DNS query.
  if (judgeHost(url) === 'private') return 'address is not public'
  // Low ports belong to other protocols, such as SMTP on 25 and SSH on 22. Servers of these protocols could read the
  // body of an HTTP request as commands.
  const portNumber = Number(url.port)
  if (url.port !== '' && portNumber !== 80 && portNumber !== 443 && portNumber < 1024) {
    return 'port is not allowed'
  }
  return null
}
