import type { Actor } from '../../sql/account/audit.ts'
import { identityOf, stateOf } from '../http/requestState.ts'

/** Who acts on a project with a platform key or a session, for the project's log. */
export function platformActor(request: Request, projectId: string): Actor {
  const { keyPrefix } = identityOf(request)
  return { projectId, keyPrefix, requestId: stateOf(request).requestId }
}
