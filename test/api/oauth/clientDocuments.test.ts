import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { RequestListener } from 'node:http'
import {
  allow,
  answered,
  authorizationOf,
  authorize,
  callMcp,
  REDIRECT,
  requestConsent,
  startOAuthService,
  token,
} from '../../support/oauth.ts'
import { newCertificate, serveTls } from '../../support/process/tlsServer.ts'
import { withinOneMinute } from '../../support/rateWindow.ts'
import type { TestService } from '../../support/service.ts'

/** Maps each path to the response of the fake host of client metadata documents. */
let answers: Map<string, { status?: number; headers?: Record<string, string>; body: string }>
let fetches: string[] = []
let port: number
let service: TestService
const certificate = newCertificate('app.example')

beforeAll(async () => {
  answers = new Map()
  const listener: RequestListener = (request, response) => {
    fetches.push(request.url!)
    const {
      status = 200,
      headers = { 'content-type': 'application/json' },
      body,
    } = answers.get(request.url!) ?? { status: 404, body: '{}' }
    response.writeHead(status, headers).end(body)
  }
  port = await serveTls(certificate, listener)
  service = await startOAuthService({
    workers: true,
    pools: ['webhooks'],
    ca: certificate.ca,
    env: { ALLOW_PRIVATE_NETWORKS: 'true' },
    resolve: (_, answer) => answer(null, [{ address: '127.0.0.1', family: 4 }]),
  })
})
afterAll(() => service[Symbol.asyncDispose]())

const urlOf = (path: string) => `https://app.example:${port}${path}`
/** Publishes a client metadata document of an OAuth app at the fake host. @returns the URL of the document. */
function publish(path: string, changes: object = {}, more: object = {}): string {
  const url = urlOf(path)
  const document = {
    client_id: url,
    client_name: 'Notes',
    redirect_uris: [REDIRECT],
    token_endpoint_auth_method: 'none',
    ...changes,
  }
  answers.set(path, { body: JSON.stringify(document), ...more })
  return url
}
const ask = (clientId: string) => authorize(service.url, authorizationOf(service.url, clientId))

test('an app whose client id is the URL of its metadata document connects, and the consent page names the host of this URL', async () => {
  const agent = await service.newAgent()
  const url = publish('/client.json')
  const asked = authorizationOf(service.url, url)
  const { id, owner } = await requestConsent(service, asked)
  expect((await owner.get(`/oauth/requests/${id}`)).body).toMatchObject({
    clientName: 'Notes',
    clientHost: `app.example:${port}`,
  })
  const { body } = await allow(owner, id, agent)
  const tokens = await token(service.url, {
    grant_type: 'authorization_code',
    code: answered(body.redirectTo).code!,
    client_id: url,
    redirect_uri: REDIRECT,
    code_verifier: asked.verifier,
  })
  expect(tokens.status).toBe(200)
  expect((await callMcp(service.url, tokens.body.access_token)).status).toBe(200)
  // The service caches the client metadata document for a while. Therefore neither this authorization request nor the
  // token request fetches the document again.
  fetches = []
  expect((await ask(url)).status).toBe(303)
  expect(fetches).toEqual([])
})

test('an unusable client metadata document leads to an error page with the reason, and is not cached', async () => {
  const faults: [path: string, changes: object, more: object, fault: string][] = [
    ['/missing', {}, { status: 404 }, 'answers 404'],
    ['/moved', {}, { status: 302, headers: { location: urlOf('/client.json') } }, 'answers 302'],
    ['/page', {}, { headers: { 'content-type': 'text/html' } }, 'not JSON'],
    ['/text', {}, { body: 'no JSON' }, 'valid JSON'],
    ['/list', {}, { body: '[]' }, 'JSON object'],
    ['/other', { client_id: urlOf('/else') }, {}, 'client_id must be the URL'],
    ['/secret', { client_secret: 'x' }, {}, 'client_secret must be absent'],
    ['/huge', { x: 'x'.repeat(6_000) }, {}, 'more than 5120 bytes'],
    ['/redirects', { redirect_uris: ['javascript:alert(1)'] }, {}, 'redirect_uris[0]'],
  ]
  for (const [path, changes, more, fault] of faults) {
    const url = publish(path, changes, more)
    const refused = await ask(url)
    expect([path, refused.status, refused.headers.get('location')]).toEqual([path, 400, null])
    expect(refused.body).toContain(fault)
    publish(path)
    expect([path, (await ask(url)).status]).toEqual([path, 303])
  }
})

test('if an app removes a redirect URI from its metadata document, the URI is refused as soon as the document is fetched again', async () => {
  const url = publish('/changing')
  expect((await ask(url)).status).toBe(303)
  publish('/changing', { redirect_uris: ['https://app.example/elsewhere'] })
  await service.database.pool.query(
    `update oauth_client_documents set fresh_until = clock_timestamp() - interval '1 second'`,
  )
  expect((await ask(url)).status).toBe(400)
})

test('the service does not fetch a client id unless it is an https URL with a path, in a form that all URL parsers read alike', async () => {
  fetches = []
  for (const id of [
    `http://app.example:${port}/client.json`,
    `https://app.example:${port}/`,
    `https://app.example:${port}`,
    `https://app.example:${port}/a/../client.json`,
    `https://me:x@app.example:${port}/client.json`,
    `https://app.example:${port}/client.json#x`,
    `https://APP.example:${port}/client.json`,
    `https://app.example:${port}\\client.json`,
  ]) {
    expect([id, (await ask(id)).status]).toEqual([id, 400])
  }
  expect(fetches).toEqual([])
})

test('a client metadata document inside the private network is never fetched', async () => {
  fetches = []
  await using guarded = await startOAuthService({
    workers: true,
    pools: ['webhooks'],
    ca: certificate.ca,
    env: { ALLOW_PRIVATE_NETWORKS: 'false' },
    resolve: (_, answer) => answer(null, [{ address: '127.0.0.1', family: 4 }]),
  })
  publish('/inside')
  for (const id of [
    urlOf('/inside'),
    `https://127.0.0.1:${port}/inside`,
    'https://169.254.169.254/latest',
    'https://[::1]/client.json',
    'https://[::ffff:127.0.0.1]/client.json',
  ]) {
    const { status } = await authorize(guarded.url, authorizationOf(guarded.url, id))
    expect([id, status]).toEqual([id, 400])
  }
  expect(fetches).toEqual([])
})

test('if 5,000 metadata documents that other networks requested recently are stored, the service fetches no additional document', async () => {
  const url = publish('/crowded')
  const { pool } = service.database
  await pool.query(
    `insert into oauth_client_documents (id, url, network, state)
     select 'flood' || n, 'https://flood.example/' || n, 'net' || n, 'wanted' from generate_series(1, 5000) n`,
  )
  await pool.query('update oauth_client_documents set network = id')
  const { status, body } = await ask(url)
  await pool.query(`delete from oauth_client_documents where id like 'flood%'`)
  expect(status).toBe(429)
  expect(body).toContain('document cannot be read now: try again')
})

test('concurrent requests for one client metadata document cause only one fetch, and too many different documents are refused', async () => {
  fetches = []
  const url = publish('/together')
  const together = await Promise.all(Array.from({ length: 5 }, () => ask(url)))
  expect(together.map(({ status }) => status)).toEqual([303, 303, 303, 303, 303])
  expect(fetches).toEqual(['/together'])
  let refused = 0
  await withinOneMinute()
  for (let n = 0; n < 40 && refused === 0; n++) {
    const { status } = await ask(publish(`/flood${n}`))
    if (status === 429) refused++
  }
  expect(refused).toBe(1)
})

test.each([
  ['https://claude.ai/oauth/mcp-oauth-client-metadata', 'https://claude.ai/api/mcp/auth_callback'],
  ['https://claude.ai/oauth/claude-code-client-metadata', 'http://localhost:50123/callback'],
  ['https://claude.ai/oauth/claude-code-client-metadata', 'http://127.0.0.1:50123/callback'],
  [
    'https://chatgpt.com/oauth/client.json',
    'https://chatgpt.com/connector_platform_oauth_redirect',
  ],
])(
  'an app may use the client id %s without registration, but only with its own redirect URI %s',
  async (clientId, redirect_uri) => {
    const asked = (more: object) =>
      authorize(service.url, authorizationOf(service.url, clientId, { redirect_uri, ...more }))
    expect((await asked({})).status).toBe(303)
    expect((await asked({ redirect_uri: 'https://evil.example/' })).status).toBe(400)
  },
)
