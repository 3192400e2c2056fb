import type { Actor } from '../../sql/account/audit.ts'
import { identityOf, stateOf } from '../http/requestState.ts'

/** Returns the actor for the audit log of a project that a platform key or a console session changes. */
export function platformActor(request: Request, projectId: string): Actor {
  const { keyPrefix } = identityOf(request)
  return { projectId, keyPrefix, requestId: stateOf(request).requestId }
}
