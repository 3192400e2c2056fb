import { ClientMetadataError, readClientMetadata } from '../../shared/oauth/clientMetadata.ts'
import { registerClient } from '../../sql/account/oauth/oauthClients.ts'
import { widestNetwork } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { limitNetwork } from './networkLimit.ts'
import { OAuthError } from './oauthError.ts'

/**
 * Serves the route `POST /oauth/register` for the dynamic registration of OAuth clients (RFC 7591). A registered client
 * is a public client, so the client gets no client secret. @throws {OAuthError} for invalid client metadata.
 */
export async function register(services: Services, request: Request, body: unknown) {
  await limitNetwork(services, request, 'register')
  const metadata = read(body)
  const client = await registerClient(services.pool, metadata, widestNetwork(request))
  if (client === null) {
    throw new OAuthError('temporarily_unavailable', 'too many apps wait for their first use', 429)
  }
  return {
    client_id: client.id,
    client_id_issued_at: Math.floor(client.createdAt.getTime() / 1000),
    client_name: metadata.name,
    redirect_uris: metadata.redirectUris,
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  }
}

function read(body: unknown) {
  try {
    return readClientMetadata(body)
  } catch (error) {
    if (!(error instanceof ClientMetadataError)) throw error
    throw new OAuthError(error.code, error.message)
  }
}
