import type { Role } from '../../shared/people/roles.ts'
import { ORGANIZATION } from '../../sql/account/audit.ts'
import { openEntry, subjectOf } from '../account/changeEntries.ts'
import type { Route } from '../docs/routeTable.ts'
import { countConsoleRequest } from '../http/gate.ts'
import { attachState, stateOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { actorOf, admitSession } from './access.ts'
import { type Delegation, delegatedIdentity, findOpened } from './delegation.ts'
import { projectOfPath, requireRole } from './people/roleGate.ts'
import { withoutHookSecrets } from './people/viewerAnswers.ts'

/**
 * Admits a request of the console if the person has the required role. If the request is for a route of the API, it
 * becomes a request to this route, with the identity of the person's session. The audit log records each change that
 * such a request makes.
 * @throws {ApiError} 401 without a session, 403 for a missing role, 404 for a hidden project or route, 429 after too
 * many requests.
 */
export async function admitConsole(
  services: Services,
  asked: {
    request: Request
    route: Route
    delegation: Delegation | null
    from: string
  },
): Promise<{
  request: Request
  answered?: (response: Response) => Promise<void>
  shown?: (response: Response) => Promise<Response>
}> {
  const { request, route, delegation, from } = asked
  const framed = route.framed === true
  const admitPerson = async (wanted: { role: Role; projectId: string | null }) => {
    const session = await admitSession(services, request, { address: from, framed })
    requireRole(session.person, wanted)
  }
  const session = await admitSession(services, request, { address: from, framed })
  await countConsoleRequest(services, session.person.id)
  const { origin, pathname, search } = new URL(request.url)
  const { person } = session
  if (delegation === null) {
    const wanted = { role: route.role!, projectId: projectOfPath(route.path, pathname) }
    requireRole(person, wanted)
    stateOf(request).admitAgain = () => admitPerson(wanted)
    return { request }
  }
  const { role, action } = findOpened(route, delegation)
  const projectId = delegation.projectId ?? projectOfPath(route.path, delegation.path)
  requireRole(person, { role, projectId })
  const identity = await delegatedIdentity(services.pool, session, delegation)
  const inner = new Request(`${origin}${delegation.path}${search}`, request)
  const state = stateOf(request)
  state.identity = identity
  state.admitAgain = () => admitPerson({ role, projectId })
  attachState(inner, state)
  if (action === null) {
    return person.role === 'viewer'
      ? { request: inner, shown: withoutHookSecrets }
      : { request: inner }
  }
  const actor = {
    projectId: delegation.projectId ?? ORGANIZATION,
    keyPrefix: actorOf(session),
    requestId: state.requestId,
  }
  const subject = subjectOf(route, delegation.path)
  const answered = await openEntry(services.pool, actor, { action, subject })
  return { request: inner, answered }
}
