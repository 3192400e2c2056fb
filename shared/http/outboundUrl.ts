import { judgeHost } from './publicAddress.ts'

/**
 * What is wrong with a URL that a tenant wants us to call, as far as can be told before any name is resolved. Asked at
 * registration, and again before every request.
 *
 * @param allowPrivate lets private, loopback and link-local addresses and any port pass (development).
 * @returns a reason that may be shown to the tenant, or null.
 */
export function outboundUrlFault(text: string, allowPrivate: boolean): string | null {
  if (!URL.canParse(text)) return 'not a valid URL'
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'not an http or https URL'
  if (url.username !== '' || url.password !== '') return 'URL holds a user name or password'
  if (allowPrivate) return null
  // Literal addresses never reach a resolver, so no later check would see them.
  if (judgeHost(url) === 'private') return 'address is not public'
  // Low ports belong to other protocols (25 SMTP, 22 SSH) that could read a body as commands.
  const portNumber = Number(url.port)
  if (url.port !== '' && portNumber !== 80 && portNumber !== 443 && portNumber < 1024) {
    return 'port is not allowed'
  }
  return null
}
