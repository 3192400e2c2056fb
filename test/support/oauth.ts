/** Connects an app to the MCP endpoint by OAuth, with the consent of the owner. */
import { createHash, randomBytes } from 'node:crypto'
import { type ConsoleClient, consoleClient, signIn } from './console/consoleSession.ts'
import { freePort } from './process/process.ts'
import {
  type Agent,
  startTestService,
  type TestService,
  type TestServiceOptions,
} from './service.ts'

export const REDIRECT = 'https://app.example/callback'

/** Starts a service with its real address as BASE_URL, because OAuth compares the URL byte for byte. */
export async function startOAuthService(options: TestServiceOptions = {}): Promise<TestService> {
  const port = await freePort()
  return await startTestService({
    smtp: false,
    workers: false,
    ...options,
    env: { PORT: String(port), BASE_URL: `http://127.0.0.1:${port}`, ...options.env },
  })
}

type Answer = { status: number; headers: Headers; body: any }

async function ask(url: string, init?: RequestInit): Promise<Answer> {
  const response = await fetch(url, { redirect: 'manual', ...init })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') === true
  return {
    status: response.status,
    headers: response.headers,
    body: isJson ? JSON.parse(text) : text,
  }
}

const form = (fields: Record<string, string>): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(fields).toString(),
})

export const register = (url: string, metadata: unknown = { redirect_uris: [REDIRECT] }) =>
  ask(`${url}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(metadata),
  })
export const token = (url: string, fields: Record<string, string>) =>
  ask(`${url}/oauth/token`, form(fields))
export const revoke = (url: string, fields: Record<string, string>) =>
  ask(`${url}/oauth/revoke`, form(fields))

/** Calls `/mcp` with an access token or an API key. */
export const callMcp = (
  url: string,
  bearer: string | null,
  message: object = LIST_TOOLS,
  path = '/mcp',
) =>
  ask(url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
    },
    body: JSON.stringify(message),
  })
const LIST_TOOLS = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
export const toolCall = (name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args },
})

export type Asked = { clientId: string; verifier: string; query: URLSearchParams }

/**
 * Makes an OAuth authorization request. `changes` replaces parameters of the request, and null omits a parameter.
 */
export function authorizationOf(
  url: string,
  clientId: string,
  changes: Record<string, string | null> = {},
): Asked {
  const verifier = randomBytes(32).toString('base64url')
  const query = new URLSearchParams()
  const parameters: Record<string, string | null> = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: REDIRECT,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    resource: `${url}/mcp`,
    scope: 'mail:read mail:send',
    state: 'a state',
    ...changes,
  }
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null) query.set(name, value)
  }
  return { clientId, verifier, query }
}

export const authorize = (url: string, { query }: Asked, cookie = '') =>
  ask(`${url}/oauth/authorize?${query}`, { headers: { cookie } })

/**
 * Makes an authorization request that waits for consent in the browser of the owner. By default the owner is the first
 * operator.
 */
export async function requestConsent(service: TestService, asked: Asked, person?: ConsoleClient) {
  const { status, headers } = await authorize(service.url, asked)
  if (status !== 303) throw new Error(`not asked: ${status}`)
  const id = headers.get('location')!.split('#')[1]!
  const cookie = headers.get('set-cookie')!.split(';')[0]!
  const session = person ?? (await signIn(service))
  const owner = consoleClient(service.url, `${session.cookie}; ${cookie}`)
  return { id, owner, browserCookie: cookie, sessionCookie: session.cookie }
}

/**
 * Gives an OAuth app the consent of the owner. The response contains the address to which the browser is redirected.
 */
export const allow = (
  owner: ConsoleClient,
  id: string,
  agent: Agent,
  changes: Record<string, unknown> = {},
) =>
  owner.post(`/oauth/requests/${id}`, {
    decision: 'allow',
    projectId: agent.project.id,
    scopes: ['mail:read', 'mail:send'],
    days: 30,
    holdsMail: false,
    ...changes,
  })

/** Returns the query parameters with which the authorization server redirects the browser back to the app. */
export const answered = (redirectTo: string): Record<string, string> =>
  Object.fromEntries(new URL(redirectTo).searchParams)

/** Returns the address of the link with which a person leaves the error page and goes back to the app. */
export const backTo = ({ body }: { body: string }): string =>
  /<a class="button" href="([^"]+)"/.exec(body)![1]!.replaceAll('&amp;', '&')

type ConnectOptions = {
  scopes?: string[]
  clientId?: string
  holdsMail?: boolean
  /** Holds the operator who gives consent to the OAuth app, by default the first operator. */
  person?: ConsoleClient
}

/**
 * Gets an OAuth authorization code after an owner gives consent.
 * @returns the parameters with which the app exchanges the code for tokens
 */
export async function codeFor(
  service: TestService,
  agent: Agent,
  { scopes = ['mail:read', 'mail:send'], clientId, holdsMail = false, person }: ConnectOptions = {},
) {
  const id = clientId ?? (await register(service.url)).body.client_id
  const asked = authorizationOf(service.url, id, { scope: scopes.join(' ') })
  const consent = await requestConsent(service, asked, person)
  const { status, body } = await allow(consent.owner, consent.id, agent, { scopes, holdsMail })
  if (status !== 200) throw new Error(`not allowed: ${status} ${body.message}`)
  const { code } = answered(body.redirectTo)
  const exchange = {
    grant_type: 'authorization_code',
    code: code!,
    client_id: id,
    redirect_uri: REDIRECT,
    code_verifier: asked.verifier,
    resource: `${service.url}/mcp`,
  }
  return { exchange, clientId: id as string, owner: consent.owner }
}

/** Connects an app to the service by OAuth. @returns the tokens of the app */
export async function connect(service: TestService, agent: Agent, options: ConnectOptions = {}) {
  const found = await codeFor(service, agent, options)
  const { status, body } = await token(service.url, found.exchange)
  if (status !== 200) throw new Error(`no tokens: ${status} ${body.error_description}`)
  return {
    ...found,
    access: body.access_token as string,
    refresh: body.refresh_token as string,
    body,
  }
}
