/**
 * Forwards console requests to the API. The paths `/console/api/v0/` and `/console/api/projects/{projectId}/v0/` give a
 * console session access to routes of the API. The console and the API use the same request handlers.
 */
import type { Role } from '../../shared/people/roles.ts'
import { PROJECT_SCOPES } from '../../shared/scopes.ts'
import type { Identity } from '../../sql/account/keys/keys.ts'
import type { ConsoleSession } from '../../sql/account/people/consoleSessions.ts'
import { findProject } from '../../sql/account/projects/projects.ts'
import type { Pool } from '../../sql/db.ts'
import { PLATFORM_SETTING_ACTIONS, SETTING_ACTIONS } from '../account/changeEntries.ts'
import type { Route } from '../docs/routeTable.ts'
import { notFound } from '../http/errors.ts'
import { actorOf } from './access.ts'

/** Describes a console request for a route of the API. */
export type Delegation = {
  /** Holds the project that the console request concerns. Null means that the route belongs to the whole platform. */
  projectId: string | null
  /** Holds the path of the API route, percent-encoded. */
  path: string
}

type Opened = {
  /**
   * Names the lowest role that allows a person to use the route. The person needs this role in the project that the
   * path names.
   */
  role: Role
  /**
   * Names the action that the audit log records for the route. The action is `null` if the route reads data, or if its
   * handler records the change itself.
   */
  action: string | null
}

const opened = (role: Role, routes: Record<string, string | null>): [string, Opened][] =>
  Object.entries(routes).map(([route, action]) => [route, { role, action }])

/** Lists the routes that are open to the console, with the audit action of each change. */
const ALLOWED: ReadonlyMap<string, Opened> = new Map([
  ...opened('viewer', {
    'GET /v0/messages': null,
    'GET /v0/messages/:messageId': null,
    'GET /v0/messages/drafts': null,
    'GET /v0/messages/drafts/:draftId': null,
    'GET /v0/messages/:messageId/raw': null,
    'GET /v0/messages/:messageId/attachments/:attachmentId': null,
    'GET /v0/messages/:messageId/attachments/:attachmentId/text': null,
    'GET /v0/platform/projects/:projectId/held': null,
    'GET /v0/platform/projects/:projectId/held/:approvalId': null,
    'GET /v0/email-rules': null,
    'GET /v0/suppressions': null,
    'GET /v0/logs': null,
    'GET /v0/sellers/endpoints': null,
    'GET /v0/sellers/endpoints/:endpointId': null,
    'GET /v0/sellers/endpoints/:endpointId/trial': null,
    'GET /v0/payments': null,
    'GET /v0/payments/export': null,
    'GET /v0/payments/activity': null,
    'GET /v0/payments/funnel': null,
    'GET /v0/payments/:paymentId': null,
    'GET /v0/webhooks': null,
    'GET /v0/webhooks/deliveries': null,
    'GET /v0/webhooks/deliveries/stats': null,
    'GET /v0/webhooks/deliveries/:deliveryId': null,
    'GET /v0/platform/projects/:projectId/purse': null,
    'GET /v0/platform/projects/:projectId/purse/payments': null,
    'GET /v0/platform/projects/:projectId/purse/spending': null,
    'GET /v0/platform/projects/:projectId/purse/asked': null,
    'GET /v0/platform/projects/:projectId/mandates': null,
    'GET /v0/platform/projects': null,
    'GET /v0/platform/projects/:projectId': null,
  }),
  ...opened('owner', {
    'POST /v0/messages/send': 'message.send',
    'POST /v0/messages/:messageId/reply': 'message.reply',
    'POST /v0/messages/:messageId/rsvp': 'message.rsvp',
    'PATCH /v0/messages/:messageId': 'message.label',
    'DELETE /v0/messages/:messageId': 'message.delete',
    'PATCH /v0/threads/:threadId': 'thread.label',
    'DELETE /v0/threads/:threadId': 'thread.delete',
    'POST /v0/messages/drafts': 'draft.create',
    // The console saves a draft repeatedly while a person types. Therefore the audit log records only that a person
    // creates, sends or deletes a draft.
    'PATCH /v0/messages/drafts/:draftId': null,
    'POST /v0/messages/drafts/:draftId/send': 'message.send',
    'DELETE /v0/messages/drafts/:draftId': 'draft.delete',
    // The handlers of some routes write audit log entries themselves, so the console writes no entries for these
    // routes.
    'POST /v0/messages/:messageId/cancel': null,
    'PATCH /v0/platform/projects/:projectId/held/:approvalId': null,
    'POST /v0/platform/projects/:projectId/held/:approvalId/approve': null,
    'POST /v0/platform/projects/:projectId/held/:approvalId/reject': null,
    // The handlers of the purse routes record each change in the audit log themselves.
    'POST /v0/platform/projects/:projectId/purse': null,
    'PATCH /v0/platform/projects/:projectId/purse': null,
    'POST /v0/platform/projects/:projectId/purse/stop': null,
    'POST /v0/platform/projects/:projectId/purse/resume': null,
    'GET /v0/platform/projects/:projectId/purse/asked/:approvalId': null,
    'POST /v0/platform/projects/:projectId/purse/asked/:approvalId/approve': null,
    'POST /v0/platform/projects/:projectId/purse/asked/:approvalId/reject': null,
    'POST /v0/platform/projects/:projectId/mandates': null,
    'PATCH /v0/platform/projects/:projectId/mandates/:mandateId': null,
    'DELETE /v0/platform/projects/:projectId/mandates/:mandateId': null,
    // The handlers of the vault routes record each read of a secret in the audit log themselves.
    'GET /v0/vault': null,
    'GET /v0/vault/:name': null,
    'PUT /v0/vault/:name': null,
    'PATCH /v0/vault/:name': null,
    'POST /v0/vault/:name/versions/:version/restore': null,
    ...SETTING_ACTIONS,
    'GET /v0/platform/projects/:projectId/payments/:paymentId/header': 'payment.header',
    'POST /v0/sellers/endpoints/:endpointId/verify': 'endpoint.verify',
    'POST /v0/sellers/endpoints/:endpointId/trial': 'endpoint.try',
    'POST /v0/webhooks/deliveries/:deliveryId/replay': 'webhook.replay',
    'PATCH /v0/platform/projects/:projectId': 'project.update',
    'POST /v0/platform/projects/:projectId/rotate-key': 'project.rotate_key',
  }),
  ...opened('operator', {
    'DELETE /v0/platform/projects/:projectId': 'project.delete',
    ...PLATFORM_SETTING_ACTIONS,
    'GET /v0/platform/domains': null,
    'GET /v0/platform/health': null,
    'GET /v0/platform/mail-reports': null,
    'POST /v0/platform/health': 'health_report.create',
  }),
])

const DELEGATED = /^\/console\/api(?:\/projects\/([\w-]{1,100}))?(\/v0\/.*)$/

/** Reads the path of a console request. Returns `null` if the path does not lead to a route of the API. */
export function readDelegation(pathname: string): Delegation | null {
  const match = DELEGATED.exec(pathname)
  return match === null ? null : { projectId: match[1] ?? null, path: match[2]! }
}

/**
 * Returns the lowest role that may use a route, and the name under which the audit log records the route's action.
 * @throws {ApiError} 404 for a route that the console may not call.
 */
export function findOpened(route: Route, { projectId }: Delegation): Opened {
  const found = ALLOWED.get(`${route.method} ${route.path}`)
  const platform = route.access === 'platform:manage'
  if (found === undefined || platform !== (projectId === null)) throw notFound()
  return found
}

/**
 * Lists the API routes that the console opens, in the form `GET /v0/vault/:name`, with the lowest role of each route.
 */
export const listOpened = (): { route: string; role: Role }[] =>
  [...ALLOWED].map(([route, { role }]) => ({ route, role }))

/**
 * Lists the scopes of requests by a person with the role viewer. These scopes give access neither to the codes in mails
 * nor to secrets.
 */
const VIEWER_SCOPES = ['mail:read', 'payments:accept'] as const

/**
 * Returns the identity under which the API handles a console request. The identity is either the platform, or the
 * project with the scopes of the person's role.
 * @throws {ApiError} 404 if the project does not exist.
 */
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
    scopes: session.person.role === 'viewer' ? [...VIEWER_SCOPES] : [...PROJECT_SCOPES],
  }
}
