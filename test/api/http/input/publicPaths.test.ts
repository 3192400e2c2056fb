/**
 * Tests that public pages and the paths of OAuth accept unknown query parameters, and that web pages of every origin
 * may read the public documents.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { authorizationOf, register, startOAuthService } from '../../../support/oauth.ts'
import type { TestService } from '../../../support/service.ts'

/** Holds query parameters that other sites and clients add to the URLs of public pages. */
const FOREIGN = 'utm_source=news&fbclid=1&nonce=abc&prompt=consent'

let service: TestService
beforeAll(async () => {
  service = await startOAuthService({ env: { MTA_STS: 'testing' } })
})
afterAll(() => service[Symbol.asyncDispose]())

const ROOT = join(import.meta.dir, '../../../..')
/** Lists the `.well-known` routes in the source, so that no new route lacks a test. */
const wellKnown = [...new Glob('api/*/**/*Routes.ts').scanSync(ROOT)].flatMap((file) =>
  [...readFileSync(join(ROOT, file), 'utf8').matchAll(/\.get\(\s*'(\/\.well-known\/[^']+)'/g)].map(
    ([, path]) => path!,
  ),
)
/** Holds the path of the MTA-STS policy, which only mail hosts read. */
const MTA_STS = '/.well-known/mta-sts.txt'
const OPEN = [
  ...wellKnown.filter((path) => path !== MTA_STS),
  ...['/identities/prj_0/did.json', '/openapi.json'],
  ...['/v0/x402/discovery/resources', '/v0/x402/discovery/search?query=weather'],
]

const PUBLIC = ['/', '/healthz', '/readyz', '/docs', '/docs/agent.md', '/llms.txt', '/console']
test.each([...PUBLIC, ...OPEN])(
  'the public page %s answers the same with and without unknown query parameters',
  async (path) => {
    const ask = async (asked: string) => {
      const { status, headers } = await fetch(service.url + asked, { redirect: 'manual' })
      return [status, headers.get('content-type')]
    }
    const plain = await ask(path)
    expect([200, 302, 303, 404]).toContain(plain[0] as number)
    expect(await ask(`${path}${path.includes('?') ? '&' : '?'}${FOREIGN}`)).toEqual(plain)
  },
)

test('the paths of OAuth accept unknown query parameters', async () => {
  const { body: client } = await register(service.url)
  const { query } = authorizationOf(service.url, client.client_id)
  const asked = `${service.url}/oauth/authorize?${query}&${FOREIGN}`
  const { status, headers } = await fetch(asked, { redirect: 'manual' })
  expect([status, headers.get('location')]).toEqual([303, expect.stringContaining('#')])
  for (const path of ['/oauth/token', '/oauth/revoke']) {
    const answer = async (address: string) => {
      const response = await fetch(service.url + address, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: `client_id=${client.client_id}&token=lort-none&grant_type=refresh_token`,
      })
      return [response.status, await response.text()]
    }
    const plain = await answer(path)
    expect([path, ...(await answer(`${path}?${FOREIGN}`))]).toEqual([path, ...plain])
    expect(plain[1]).not.toContain('The query')
  }
  const registered = await fetch(`${service.url}/oauth/register?${FOREIGN}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: ['https://app.example/callback'] }),
  })
  expect(registered.status).toBe(201)
})

test('a web page of any origin may ask for every public document, with any header', async () => {
  expect(wellKnown).toContain('/.well-known/did.json')
  expect(wellKnown).toContain(MTA_STS)
  for (const path of OPEN) {
    const { status, headers } = await fetch(service.url + path, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://page.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'authorization,mcp-protocol-version',
      },
    })
    const shown = ['origin', 'methods', 'headers'].map((name) =>
      headers.get(`access-control-allow-${name}`),
    )
    expect([path, status, ...shown]).toEqual([path, 204, '*', 'GET, HEAD', '*, Authorization'])
    const { headers: read } = await fetch(service.url + path)
    expect([path, read.get('access-control-allow-origin')]).toEqual([path, '*'])
  }
})

test('a web page of another origin may not ask for the MTA-STS policy, which only mail hosts read', async () => {
  const { status } = await fetch(service.url + MTA_STS, { method: 'OPTIONS' })
  expect(status).toBe(405)
})
