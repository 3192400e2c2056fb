import { networkSubject } from '../../shared/http/networkSubject.ts'
import { ClientMetadataError, readClientMetadata } from '../../shared/oauth/clientMetadata.ts'
import { countRequests } from '../../sql/account/keys/rateWindows.ts'
import { registerClient } from '../../sql/account/oauth/oauthClients.ts'
import { stateOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { OAuthError } from './oauthError.ts'

/** Registrations a minute of one network. Claude registers once a connection, and all its calls share a few addresses. */
const PER_MINUTE = 60

/** `POST /oauth/register` (RFC 7591). The client is public: it gets no secret. @throws {OAuthError} */
export async function register(services: Services, request: Request, body: unknown) {
  const { pool, gatePool } = services
  const subject = `oauth:${networkSubject(stateOf(request).clientAddress)}`
  const { used } = await countRequests(gatePool, subject, 1)
  if (used > PER_MINUTE) {
    throw new OAuthError('temporarily_unavailable', 'too many registrations: wait a minute', 429)
  }
  const metadata = read(body)
  const client = await registerClient(pool, metadata)
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
