import type { Actor } from '../../sql/account/audit.ts'
import { identityOf, stateOf } from '../http/requestState.ts'

/** Returns the actor that the audit log of a project names if a platform key or a session changes the project. */
export function platformActor(request: Request, projectId: string): Actor {
  const { keyPrefix } = identityOf(request)
  return { projectId, keyPrefix, requestId: stateOf(request).requestId }
}
