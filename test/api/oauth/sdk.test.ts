import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  type OAuthClientProvider,
  UnauthorizedError,
} from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type {
  OAuthClientInformationMixed,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  allow,
  answered,
  REDIRECT,
  requestConsent,
  startOAuthService,
} from '../../support/oauth.ts'
import type { Agent, TestService } from '../../support/service.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startOAuthService()
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

/** Stores the data that the MCP client library gives to an OAuth provider, and the URL that the owner should open. */
class Host implements OAuthClientProvider {
  redirectUrl = REDIRECT
  clientMetadata = {
    client_name: 'A host',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    scope: 'mail:read',
  }
  client: OAuthClientInformationMixed | undefined
  kept: OAuthTokens | undefined
  verifier = ''
  opened: URL | null = null
  clientInformation = () => this.client
  saveClientInformation(client: OAuthClientInformationMixed) {
    this.client = client
  }
  tokens = () => this.kept
  saveTokens(tokens: OAuthTokens) {
    this.kept = tokens
  }
  redirectToAuthorization(url: URL) {
    this.opened = url
  }
  saveCodeVerifier(verifier: string) {
    this.verifier = verifier
  }
  codeVerifier = () => this.verifier
  state = () => 'the state of a host'
}

const transportOf = (host: Host, path = '/mcp') =>
  new StreamableHTTPClientTransport(new URL(path, service.url), { authProvider: host })

/** Opens the consent URL in a browser as the owner does, and allows the app. */
async function consent(host: Host): Promise<string> {
  const query = host.opened!.searchParams
  const { id, owner } = await requestConsent(service, { clientId: '', verifier: '', query })
  const { body } = await allow(owner, id, agent, { scopes: ['mail:read'] })
  const { code, iss, state } = answered(body.redirectTo)
  expect([iss, state]).toEqual([service.url, 'the state of a host'])
  return code!
}

test.each(['/mcp', '/mcp?names=underscore'])(
  'the official MCP client connects to %s without help: it reads metadata, registers, gets consent and tokens, and refreshes a token',
  async (path) => {
    const host = new Host()
    const first = transportOf(host, path)
    const client = new Client({ name: 'host', version: '1' })
    await expect(client.connect(first as Transport)).rejects.toThrow(UnauthorizedError)
    await first.finishAuth(await consent(host))
    await using connected = Object.assign(new Client({ name: 'host', version: '1' }), {
      [Symbol.asyncDispose]: () => connected.close(),
    })
    await connected.connect(transportOf(host, path) as Transport)
    const { tools } = await connected.listTools()
    expect(tools.map(({ name }) => name)).toContain('mail_get_message')
    const whoami = await connected.callTool({ name: 'whoami', arguments: {} })
    expect(whoami.structuredContent).toMatchObject({ email: agent.address })

    const before = host.kept!
    await service.database.pool.query(
      `update oauth_tokens set expires_at = clock_timestamp() - interval '1 second' where kind = 'access'`,
    )
    expect((await connected.listTools()).tools.length).toBeGreaterThan(0)
    expect(host.kept!.access_token).not.toBe(before.access_token)
    expect(host.kept!.refresh_token).not.toBe(before.refresh_token)
  },
)

test('if a call needs a scope that the app lacks, the official MCP client asks the owner for consent to this scope', async () => {
  const host = new Host()
  const first = transportOf(host)
  const client = new Client({ name: 'host', version: '1' })
  await expect(client.connect(first as Transport)).rejects.toThrow(UnauthorizedError)
  await first.finishAuth(await consent(host))
  const connected = new Client({ name: 'host', version: '1' })
  await connected.connect(transportOf(host) as Transport)
  host.opened = null
  // The test removes the refresh token from the client. With a refresh token, this version of the client would renew
  // its tokens and not ask the owner.
  const { refresh_token: _, ...access } = host.kept!
  host.kept = access
  const send = connected.callTool({
    name: 'mail_send',
    arguments: { to: ['ada@example.com'], subject: 'x', text: 'x' },
  })
  await expect(send).rejects.toThrow()
  const asked = host.opened as URL | null
  expect(asked?.searchParams.get('scope')?.split(' ').toSorted()).toEqual([
    'mail:read',
    'mail:send',
  ])
  await connected.close()
})
