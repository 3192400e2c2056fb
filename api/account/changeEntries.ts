/** Writes the audit log entries about changes of settings, such as webhooks, endpoints, email rules and mail domains. */
import {
  type Actor,
  type Outcome,
  openAudit,
  setOutcome,
  setSubject,
} from '../../sql/account/audit.ts'
import type { Pool } from '../../sql/db.ts'
import type { Route } from '../docs/routeTable.ts'
import { errorResponse, toApiError } from '../http/errors.ts'
import type { Services } from '../http/services.ts'

/**
 * Maps each route that changes a setting of a project to the action in the audit log. A stolen key can send events to
 * another server or change a price, and the owner must see which key did so.
 */
export const SETTING_ACTIONS: Readonly<Record<string, string>> = {
  'POST /v0/email-rules': 'email_rule.create',
  'DELETE /v0/email-rules/:ruleId': 'email_rule.delete',
  'DELETE /v0/suppressions/:address': 'suppression.delete',
  'PUT /v0/sellers/endpoints': 'endpoint.put',
  'PATCH /v0/sellers/endpoints/:endpointId': 'endpoint.update',
  'POST /v0/sellers/endpoints/:endpointId/rotate-secret': 'endpoint.rotate_secret',
  'DELETE /v0/sellers/endpoints/:endpointId': 'endpoint.delete',
  'POST /v0/webhooks': 'webhook.create',
  'PATCH /v0/webhooks/:webhookId': 'webhook.update',
  'POST /v0/webhooks/:webhookId/rotate-secret': 'webhook.rotate_secret',
  'DELETE /v0/webhooks/:webhookId': 'webhook.delete',
}

/** Maps each route that changes a setting of the whole platform to the action in the audit log of the organization. */
export const PLATFORM_SETTING_ACTIONS: Readonly<Record<string, string>> = {
  'POST /v0/platform/projects': 'project.create',
  'POST /v0/platform/domains': 'mail_domain.create',
  'POST /v0/platform/domains/:domain/verify': 'mail_domain.verify',
  'DELETE /v0/platform/domains/:domain': 'mail_domain.delete',
}

/** Returns the action of a route that changes a setting. Returns `null` for every other route. */
export function settingActionOf({ method, path }: Route): string | null {
  const route = `${method} ${path}`
  return SETTING_ACTIONS[route] ?? PLATFORM_SETTING_ACTIONS[route] ?? null
}

/** Describes for the audit log which object was changed, and a detail about the change. */
type Made = { subject: string; detail?: string }

/**
 * Reads the id of a new object from the response for the audit log, because the request that creates the object does
 * not contain the id. The audit log does not copy secrets from the response.
 */
const MADE: Readonly<Record<string, (answer: Record<string, string>) => Made>> = {
  'email_rule.create': ({ id, type, scope, value }) => ({
    subject: id!,
    detail: `${type} ${scope} ${value}`,
  }),
  'message.send': ({ messageId }) => ({ subject: messageId! }),
  'draft.create': ({ draftId }) => ({ subject: draftId! }),
  'endpoint.put': ({ endpointId, urlPattern }) => ({ subject: endpointId!, detail: urlPattern! }),
  'payment.header': ({ paymentId }) => ({ subject: paymentId! }),
  'webhook.create': ({ webhookId }) => ({ subject: webhookId! }),
  'project.create': ({ projectId }) => ({ subject: projectId! }),
  'mail_domain.create': ({ domain }) => ({ subject: domain! }),
  'health_report.create': ({ reportId }) => ({ subject: reportId! }),
}

/** Matches a valid subject of an audit log entry, which is one line of text. */
const SUBJECT = /^[^\p{Cc}]{1,320}$/u

/** Describes a change that the audit log records before the change begins. */
export type Change = { action: string; subject: string | null }

/**
 * Writes an audit log entry before the API makes the change, so that no change goes unrecorded.
 * @returns a function that reads the response and adds the result and the subject of the change to the audit log entry.
 */
export async function openEntry(
  pool: Pool,
  actor: Actor,
  change: Change,
): Promise<(response: Response) => Promise<void>> {
  const { action } = change
  const subject = change.subject !== null && SUBJECT.test(change.subject) ? change.subject : null
  const row = await openAudit(pool, actor, { action, subject, outcome: 'ok' })
  return async (response) => {
    if (response.status >= 400) return setOutcome(pool, row, outcomeOf(response.status))
    const made = MADE[action]?.((await response.clone().json()) as Record<string, string>)
    if (made !== undefined) await setSubject(pool, row, made.subject, made.detail)
  }
}

/**
 * Makes a change for an MCP tool. The audit log gets the same entry as for the route that makes the change. If the
 * audit log cannot record the result, the service only logs this error, because the change is already made.
 */
export async function recordChange<Result>(
  { pool, log }: Pick<Services, 'pool' | 'log'>,
  actor: Actor,
  change: Change,
  make: () => Promise<Result>,
): Promise<Result> {
  const answered = await openEntry(pool, actor, change)
  const close = (response: Response) => answered(response).catch((error) => logUnclosed(log, error))
  try {
    const result = await make()
    await close(Response.json(result ?? null))
    return result
  } catch (error) {
    await close(errorResponse(toApiError(error, actor.requestId)))
    throw error
  }
}

/** Logs that an audit log entry does not show the result of its change. */
export const logUnclosed = (log: Services['log'], error: unknown): void =>
  log.warn({ err: error }, 'an entry of the audit log lacks its outcome')

/**
 * Returns the first path parameter of a request, which names a project, a rule, an address or a domain. Returns `null`
 * if the route has no path parameters.
 */
export function subjectOf(route: Route, path: string): string | null {
  const position = route.path.split('/').findIndex((part) => part.startsWith(':'))
  const named = path.split('/')[position]
  if (named === undefined) return null
  try {
    return decodeURIComponent(named)
  } catch {
    return null
  }
}

function outcomeOf(status: number): Outcome {
  if (status === 404) return 'not_found'
  return status < 500 ? 'refused' : 'failed'
}
