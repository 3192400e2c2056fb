import type { Actor } from '../../sql/account/audit.ts'
import { identityOf, stateOf } from '../http/requestState.ts'

/** Returns the name under which a project's audit log records a change by a platform key or a console session. */
export function platformActor(request: Request, projectId: string): Actor {
  const { keyPrefix } = identityOf(request)
  return { projectId, keyPrefix, requestId: stateOf(request).requestId }
}

/**
 * Returns a function that checks the key or the session of a request once more. An owner's decision runs this function
 * in the transaction of the decision, because the transaction may have waited for a lock since the first check.
 */
export const stillAdmitted = (request: Request) => async (): Promise<void> => {
  await stateOf(request).admitAgain?.()
}
