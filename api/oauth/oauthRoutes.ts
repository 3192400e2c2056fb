import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Config } from '../../shared/config/config.ts'
import { LEAST_SCOPES, OFFLINE_ACCESS, offeredScopes } from '../../shared/oauth/oauthScopes.ts'
import { isOAuthOn, mcpResource } from '../../shared/oauth/resource.ts'
import { notFound } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { stateOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { authorize } from './authorize.ts'
import { limitNetwork } from './networkLimit.ts'
import { answerOAuth } from './oauthError.ts'
import { register } from './register.ts'
import { fieldsOf, giveTokens, revoke } from './token.ts'

/** Sets the maximum number of bytes of an OAuth request body, because OAuth forms and registrations are small. */
const BODY_MAX_BYTES = 8 * 1024

const Form = t.Array(t.Tuple([t.String(), t.String()]))

const describe = { tag: 'Service', access: 'public', cors: true } as const
const small = { ...describe, bodyMaxBytes: BODY_MAX_BYTES } as const
const ok = { status: 200, description: 'JSON.' } as const

/**
 * Serves the authorization server of the MCP endpoint (OAuth 2.1, RFC 8414, RFC 9728). The OAuth endpoints are
 * hand-written, because no OAuth library works with Bun (docs/decisions/oauth-endpoints.md).
 */
export function oauthRoutes(services: Services) {
  const { baseUrl } = services.config.http
  if (!isOAuthOn(baseUrl)) return new Elysia()
  const resource = () =>
    Response.json({
      resource: mcpResource(baseUrl),
      authorization_servers: [baseUrl],
      scopes_supported: LEAST_SCOPES,
      bearer_methods_supported: ['header'],
      resource_name: 'Purser',
    })
  const form = (work: (fields: Record<string, string>, requestId: string) => Promise<unknown>) => ({
    handle: ({ request, body }: { request: Request; body: Static<typeof Form> }) =>
      answerOAuth(async () => {
        await limitNetwork(services, request, 'token')
        return { body: await work(fieldsOf(body), stateOf(request).requestId) }
      }),
  })
  return new Elysia()
    .get('/.well-known/oauth-protected-resource', resource, {
      detail: operation({
        ...describe,
        summary: 'The MCP endpoint as an OAuth resource',
        success: ok,
      }),
    })
    .get('/.well-known/oauth-protected-resource/mcp', resource, {
      detail: operation({
        ...describe,
        summary: 'The MCP endpoint as an OAuth resource',
        success: ok,
      }),
    })
    .get(
      '/.well-known/oauth-authorization-server',
      () => Response.json(serverMetadata(services.config)),
      {
        detail: operation({ ...describe, summary: 'The OAuth authorization server', success: ok }),
      },
    )
    .get('/.well-known/openid-configuration', () => Promise.reject(notFound()), {
      detail: operation({ ...describe, summary: 'There is no OpenID provider', success: ok }),
    })
    .get('/oauth/authorize', ({ request }) => authorize(services, request), {
      detail: operation({
        tag: 'Service',
        access: 'public',
        page: true,
        summary: 'Ask the owner to allow an app',
        success: { status: 303, description: 'The consent page.' },
      }),
    })
    .post(
      '/oauth/token',
      form((fields, requestId) => giveTokens(services, fields, requestId)).handle,
      {
        body: Form,
        detail: operation({
          ...small,
          form: 'pairs',
          summary: 'Exchange a code or a refresh token',
          success: ok,
        }),
      },
    )
    .post(
      '/oauth/revoke',
      form(async (fields, requestId) => {
        await revoke(services, fields, requestId)
        return {}
      }).handle,
      {
        body: Form,
        detail: operation({ ...small, form: 'pairs', summary: 'Revoke a token', success: ok }),
      },
    )
    .post(
      '/oauth/register',
      ({ request, body }) =>
        answerOAuth(async () => ({ status: 201, body: await register(services, request, body) })),
      {
        detail: operation({
          ...small,
          anyJson: true,
          summary: 'Register an app',
          success: { ...ok, status: 201 },
        }),
      },
    )
}

/**
 * Returns the metadata of the authorization server (RFC 8414). The field `issuer` is byte for byte identical to the
 * parameter `iss` and to the issuer in the metadata of the protected resource.
 */
const serverMetadata = ({ http: { baseUrl }, oauthPurseScopes }: Config) => ({
  issuer: baseUrl,
  authorization_endpoint: `${baseUrl}/oauth/authorize`,
  token_endpoint: `${baseUrl}/oauth/token`,
  registration_endpoint: `${baseUrl}/oauth/register`,
  revocation_endpoint: `${baseUrl}/oauth/revoke`,
  response_types_supported: ['code'],
  response_modes_supported: ['query'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: ['none'],
  revocation_endpoint_auth_methods_supported: ['none'],
  client_id_metadata_document_supported: true,
  authorization_response_iss_parameter_supported: true,
  scopes_supported: [...offeredScopes(oauthPurseScopes), OFFLINE_ACCESS],
})
