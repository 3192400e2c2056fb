import { findRegisteredClient, type OAuthClient } from '../../sql/account/oauth/oauthClients.ts'
import type { Services } from '../http/services.ts'
import { OAuthError } from './oauthError.ts'

const REGISTERED = /^oac_[0-9a-f]{24}$/

/** The client of an id. @throws {OAuthError} */
export async function findClient(
  { pool }: Services,
  _request: Request,
  id: string,
): Promise<OAuthClient> {
  const client = REGISTERED.test(id) ? await findRegisteredClient(pool, id) : null
  if (client === null) {
    throw new OAuthError('invalid_client', 'client_id is unknown: let the app register again', 401)
  }
  return client
}
