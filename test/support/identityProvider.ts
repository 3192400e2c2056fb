/** Runs a fake identity provider of a company, and signs in at its page. */
import { join } from 'node:path'
import { freePort, printed, startCommand } from './process/process.ts'

const CLIENT_SECRET = 'the secret of the company that only the worker reads'

/**
 * Starts an identity provider, which redirects a browser to the service at `baseUrl`. @returns the identity provider
 * with the settings that the service needs
 */
export async function startIdentityProvider(baseUrl: string) {
  const port = await freePort()
  const program = join(import.meta.dir, 'identityProvider.mjs')
  const process = startCommand(
    ['node', program, String(port), `${baseUrl}/console/company`, CLIENT_SECRET],
    {},
  )
  await printed(process, /the provider listens/)
  return {
    url: `http://127.0.0.1:${port}`,
    secret: CLIENT_SECRET,
    env: {
      OIDC_ISSUER: `http://127.0.0.1:${port}`,
      OIDC_CLIENT_ID: 'purser',
      OIDC_CLIENT_SECRET: CLIENT_SECRET,
    },
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  }
}

/**
 * Signs in at the page of the identity provider, as a browser with cookies does. @returns the URL of the last redirect
 */
export async function signInAt(url: string, login: string, homeUrl: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let next = new URL(url)
  let form: Record<string, string> | null = null
  for (let step = 0; step < 20; step++) {
    if (next.href.startsWith(homeUrl)) return next
    const response: Response = await fetch(next, {
      redirect: 'manual',
      headers: {
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      },
      ...(form === null ? {} : { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = ''] = cookie.split(';')
      const at = pair.indexOf('=')
      cookies.set(pair.slice(0, at), pair.slice(at + 1))
    }
    const location = response.headers.get('location')
    if (location !== null) {
      next = new URL(location, next)
      form = null
      continue
    }
    const html = await response.text()
    const action = /action="([^"]+)"/.exec(html)?.[1]
    const prompt = /name="prompt" value="(\w+)"/.exec(html)?.[1]
    if (action === undefined || prompt === undefined) throw new Error(html)
    next = new URL(action, next)
    form = prompt === 'login' ? { prompt, login, password: 'x' } : { prompt }
  }
  throw new Error('the provider leads in a circle')
}
