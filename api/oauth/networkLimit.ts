import { networkSubject } from '../../shared/http/networkSubject.ts'
import { countRequests } from '../../sql/account/keys/rateWindows.ts'
import { stateOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { OAuthError } from './oauthError.ts'

/** Requests a minute of one network. All users of a chat host share a few addresses. */
const PER_MINUTE = { authorize: 120, document: 30, register: 60, token: 600 } as const

/** Bounds what strangers may ask for. @throws {OAuthError} 429 */
export async function limitNetwork(
  { gatePool }: Services,
  request: Request,
  use: keyof typeof PER_MINUTE,
): Promise<void> {
  const network = networkSubject(stateOf(request).clientAddress)
  const { used } = await countRequests(gatePool, `oauth:${use}:${network}`, 1)
  if (used <= PER_MINUTE[use]) return
  throw new OAuthError('temporarily_unavailable', 'too many requests: wait a minute', 429)
}
