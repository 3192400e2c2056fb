import type { Actor } from '../../sql/account/audit.ts'
import { identityOf, stateOf } from '../http/requestState.ts'

/** Returns the name under which a project's audit log records a change by a platform key or a console session. */
export function platformActor(request: Request, projectId: string): Actor {
  const { keyPrefix } = identityOf(request)
  return { projectId, keyPrefix, requestId: stateOf(request).requestId }
}
