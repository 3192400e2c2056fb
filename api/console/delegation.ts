/**
 * The console shows what the API serves: below `/console/api/v0/` and `/console/api/projects/{projectId}/v0/` stand routes
 * of the API, answered by the very same handlers, for whoever holds a session instead of a key.
 */
import { PROJECT_SCOPES } from '../../shared/scopes.ts'
import { ORGANIZATION, type Outcome, openAudit, setOutcome, setSubject } from '../../sql/audit.ts'
import type { ConsoleSession } from '../../sql/consoleSessions.ts'
import type { Pool } from '../../sql/db.ts'
import type { Identity } from '../../sql/keys.ts'
import { findProject } from '../../sql/projects.ts'
import { notFound } from '../errors.ts'
import type { Route } from '../routeTable.ts'
import { actorOf } from './access.ts'

/** A request of the console for a route of the API. */
export type Delegation = {
  /** Null for routes of the platform. */
  projectId: string | null
  /** The path that the API knows, still encoded. */
  path: string
}

/** What the console may ask the API for; what changes something is written down under this name. */
const ALLOWED: Readonly<Record<string, string | null>> = {
  'GET /v0/messages': null,
  'GET /v0/messages/:messageId/raw': null,
  'GET /v0/messages/:messageId/attachments/:attachmentId': null,
  'GET /v0/vault': null,
  // The vault writes down each read of a secret by itself.
  'GET /v0/vault/:name': null,
  'GET /v0/logs': null,
  'GET /v0/sellers/endpoints': null,
  'GET /v0/payments': null,
  'GET /v0/payments/:paymentId': null,
  'GET /v0/webhooks/deliveries': null,
  'GET /v0/webhooks/deliveries/:deliveryId': null,
  'POST /v0/webhooks/deliveries/:deliveryId/replay': 'webhook.replay',
  'GET /v0/platform/projects': null,
  'POST /v0/platform/projects': 'project.create',
  'GET /v0/platform/projects/:projectId': null,
  'PATCH /v0/platform/projects/:projectId': 'project.update',
  'POST /v0/platform/projects/:projectId/rotate-key': 'project.rotate_key',
  'DELETE /v0/platform/projects/:projectId': 'project.delete',
}

const DELEGATED = /^\/console\/api(?:\/projects\/([\w-]{1,100}))?(\/v0\/.*)$/

/** Reads the path of a request; null when it asks for no route of the API. */
export function readDelegation(pathname: string): Delegation | null {
  const match = DELEGATED.exec(pathname)
  return match === null ? null : { projectId: match[1] ?? null, path: match[2]! }
}

/** The action's name for the audit log, or null for one that changes nothing. @throws {ApiError} 404 */
export function delegatedAction(route: Route, { projectId }: Delegation): string | null {
  const action = ALLOWED[`${route.method} ${route.path}`]
  const platform = route.access === 'platform:manage'
  if (action === undefined || platform !== (projectId === null)) throw notFound()
  return action
}

/** As whom the API is asked: the project with all scopes, or the platform. @throws {ApiError} 404 */
export async function delegatedIdentity(
  pool: Pool,
  session: ConsoleSession,
  { projectId }: Delegation,
): Promise<Identity> {
  const signedIn = { keyId: '', keyPrefix: actorOf(session) }
  if (projectId === null) {
    return { ...signedIn, kind: 'platform', projectId, inboxAddress: null, scopes: [] }
  }
  const project = await findProject(pool, projectId)
  if (project === null) throw notFound('Project not found')
  return {
    ...signedIn,
    kind: 'project',
    projectId,
    inboxAddress: project.emailAddress,
    scopes: [...PROJECT_SCOPES],
  }
}

/**
 * Writes down that something is about to be changed, before it is.
 * @returns what corrects the entry once the answer is known.
 */
export async function openEntry(
  pool: Pool,
  session: ConsoleSession,
  entry: { action: string; path: string; projectId: string | null; requestId: string },
): Promise<(response: Response) => Promise<void>> {
  const row = await openAudit(
    pool,
    {
      projectId: entry.projectId ?? ORGANIZATION,
      keyPrefix: actorOf(session),
      requestId: entry.requestId,
    },
    { action: entry.action, subject: subjectOf(entry.path), outcome: 'ok' },
  )
  return async (response) => {
    if (response.status >= 400) return setOutcome(pool, row, outcomeOf(response.status))
    if (response.status !== 201) return
    const created = (await response.clone().json()) as { projectId: string }
    await setSubject(pool, row, created.projectId)
  }
}

/** The identifier in a path, which stands behind its collection: a delivery, a project. */
const subjectOf = (path: string): string | null =>
  /\/(?:deliveries|projects)\/([\w-]{1,100})/.exec(path)?.[1] ?? null

function outcomeOf(status: number): Outcome {
  if (status === 404) return 'not_found'
  return status < 500 ? 'refused' : 'failed'
}
