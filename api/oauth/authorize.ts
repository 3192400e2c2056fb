import type { Config } from '../../shared/config/config.ts'
import { KNOWN_DOCUMENTS } from '../../shared/oauth/clientDocument.ts'
import { offeredScopes, readScopes, SCOPE_MAX_CHARS } from '../../shared/oauth/oauthScopes.ts'
import { isChallenge } from '../../shared/oauth/oauthTokens.ts'
import { isRegistered } from '../../shared/oauth/redirectUri.ts'
import { isMcpResource, mcpResource } from '../../shared/oauth/resource.ts'
import type { OAuthClient } from '../../sql/account/oauth/oauthClients.ts'
import { createRequest } from '../../sql/account/oauth/oauthRequests.ts'
import { browserHeaders, browserOf } from '../http/browserCookie.ts'
import { escaped, pageHtml, personPage } from '../http/personPage.ts'
import { widestNetwork } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { findClient } from './findClient.ts'
import { limitNetwork } from './networkLimit.ts'
import { OAuthError } from './oauthError.ts'

const STATE_MAX_CHARS = 2_000
const ID_MAX_CHARS = 500

/**
 * Serves the route `GET /oauth/authorize` (OAuth 2.1 §4.1.1), which stores the authorization request and redirects to
 * the consent page of the console. If the client or the redirect URI is wrong, the route shows an error page. The
 * service must not redirect anybody to an unregistered address. A stranger may have registered an address, so the
 * service does not redirect anybody to it before a person has signed in (RFC 9700 §4.11.2).
 */
export async function authorize(services: Services, request: Request): Promise<Response> {
  const { pool, config } = services
  const { baseUrl } = config.http
  const query = new URL(request.url).searchParams
  let client: OAuthClient
  let redirectUri: string
  try {
    await limitNetwork(services, request, 'authorize')
    client = await findClient(services, request, once(query, 'client_id', ID_MAX_CHARS))
    redirectUri = registeredUri(query, client)
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return errorPage(error)
  }
  // An OAuth parameter without a value counts as absent (RFC 6749 §3.1).
  const state = query.get('state') || null
  try {
    const asked = readRequest(query, config)
    const browser = browserOf(request, baseUrl)
    const id = await createRequest(
      pool,
      browser,
      {
        clientId: client.id,
        clientName: client.name,
        clientHost: client.host,
        redirectUri,
        state,
        ...asked,
      },
      widestNetwork(request),
    )
    if (id === null) {
      throw new OAuthError(
        'temporarily_unavailable',
        'too many apps wait for consent: try again in a few minutes',
        429,
      )
    }
    return new Response(null, {
      status: 303,
      headers: {
        location: `/console/connect#${id}`,
        ...browserHeaders(baseUrl, browser),
        'referrer-policy': 'no-referrer',
      },
    })
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    const answer = { error: error.code, error_description: error.message, state }
    const location = redirectTo(redirectUri, answer, baseUrl)
    return isTrusted(client, redirectUri) ? redirect(location) : errorPage(error, location)
  }
}

function readRequest(query: URLSearchParams, { http: { baseUrl }, oauthPurseScopes }: Config) {
  const state = once(query, 'state', STATE_MAX_CHARS, false)
  if (state !== null && /[^\x20-\x7e]/.test(state)) {
    throw new OAuthError('invalid_request', 'state must be visible ASCII')
  }
  if (once(query, 'response_type', 100) !== 'code') {
    throw new OAuthError('unsupported_response_type', 'response_type must be code')
  }
  const challenge = once(query, 'code_challenge', 200)
  if (!isChallenge(challenge) || once(query, 'code_challenge_method', 100) !== 'S256') {
    throw new OAuthError('invalid_request', 'code_challenge must be one of the method S256')
  }
  const resources = new Set(query.getAll('resource').filter((resource) => resource !== ''))
  if (![...resources].every((resource) => isMcpResource(resource, baseUrl)) || resources.size > 1) {
    throw new OAuthError('invalid_target', `resource must be ${mcpResource(baseUrl)}`)
  }
  const asked = once(query, 'scope', SCOPE_MAX_CHARS, false)
  const scopes = readScopes(asked, offeredScopes(oauthPurseScopes))
  if (scopes === null || scopes.length === 0) {
    throw new OAuthError('invalid_scope', 'scope names none that an owner can give')
  }
  return { challenge, scopes, resource: mcpResource(baseUrl) }
}

function once(query: URLSearchParams, name: string, maxChars: number): string
function once(query: URLSearchParams, name: string, maxChars: number, needed: false): string | null
function once(query: URLSearchParams, name: string, maxChars: number, needed = true) {
  const values = query.getAll(name)
  if (values.length > 1) throw new OAuthError('invalid_request', `${name} must be set once`)
  const [value = ''] = values
  if (value === '' && needed) throw new OAuthError('invalid_request', `${name} must be set`)
  if (value.length > maxChars) {
    throw new OAuthError('invalid_request', `${name} must have at most ${maxChars} characters`)
  }
  return value === '' ? null : value
}

/**
 * Returns the redirect URI of an authorization request. If the authorization request names no redirect URI, returns the
 * client's only registered URI.
 */
function registeredUri(query: URLSearchParams, { redirectUris }: OAuthClient): string {
  const given = once(query, 'redirect_uri', ID_MAX_CHARS, false)
  const uri = given ?? (redirectUris.length === 1 ? redirectUris[0]! : null)
  if (uri === null) throw new OAuthError('invalid_request', 'redirect_uri must be set')
  if (!isRegistered(uri, redirectUris)) {
    throw new OAuthError('invalid_request', 'redirect_uri must be one that the app has registered')
  }
  return uri
}

/**
 * Returns the URL with which an authorization response redirects the browser. The parameter `iss` protects against
 * attacks that mix up two authorization servers (RFC 9207).
 */
export function redirectTo(
  redirectUri: string,
  answer: Record<string, string | null>,
  baseUrl: string,
): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries({ ...answer, iss: baseUrl })) {
    if (value !== null) parameters.set(name, value)
  }
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${parameters}`
}

/**
 * Tells whether the service may redirect a browser to a client at once, without a person who has signed in. This is
 * the case for the well-known clients, and for programs on the computer of the browser.
 */
const isTrusted = ({ id }: OAuthClient, redirectUri: string): boolean =>
  KNOWN_DOCUMENTS.has(id) || new URL(redirectUri).protocol !== 'https:'

const redirect = (location: string): Response =>
  new Response(null, { status: 303, headers: { location, 'cache-control': 'no-store' } })

const CANNOT = 'This app cannot be connected'

/**
 * Returns the page that shows an error of an authorization request. @param location is the address with which the
 * person goes back to the app. Without it, the page has no link.
 */
function errorPage({ message, status }: OAuthError, location?: string): Response {
  const link =
    location === undefined
      ? ''
      : `\n<p><a class="button" href="${escaped(location)}">Back to ${escaped(new URL(location).host)}</a></p>`
  const html = pageHtml(CANNOT, `<p>${escaped(message)}.</p>${link}`)
  return personPage(html, status === 429 ? 429 : 400)
}
