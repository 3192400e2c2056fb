import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { MessageEventData } from '../../shared/events/events.ts'
import { holdsIn } from '../../shared/mail/searchQuery.ts'
import { findMessage } from '../../sql/mail/messages.ts'
import { findFirstReceived } from '../../sql/mail/searchMessages.ts'
import { badRequest } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { projectOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { type MessageFilter, MessageFilterQuery, readMessageFilter } from './messageFilter.ts'
import { EXAMPLE_MESSAGE } from './messages.ts'
import { toWhole, WholeMessage } from './messageView.ts'

const TIMEOUT_DEFAULT_S = 30
const TIMEOUT_MAX_S = 60

/** What a message must be like to be waited for. */
export const WaitFilter = t.Pick(MessageFilterQuery, ['labels', 'from', 'subject', 'after'])

const Query = t.Composite([
  t.Object({
    timeout: t.Optional(
      t.String({
        pattern: '^[0-9]{1,3}$',
        error: `be a whole number of seconds, at most ${TIMEOUT_MAX_S}`,
        openapi: {
          type: 'integer',
          minimum: 0,
          maximum: TIMEOUT_MAX_S,
          default: TIMEOUT_DEFAULT_S,
        },
        description: 'Seconds to wait at most.',
      }),
    ),
  }),
  WaitFilter,
])

/** `/v0/messages/wait`: the next message, as soon as it is there. */
export function messageWaitRoutes(services: Services) {
  return new Elysia().get(
    '/v0/messages/wait',
    async ({ request, query }) => {
      const timeoutS = Number(query.timeout ?? TIMEOUT_DEFAULT_S)
      if (timeoutS > TIMEOUT_MAX_S) {
        throw badRequest(`timeout must be a whole number of seconds, at most ${TIMEOUT_MAX_S}`)
      }
      const message = await waitForMessage(services, projectOf(request).projectId, {
        filter: query,
        timeoutMs: timeoutS * 1_000,
        signal: request.signal,
      })
      return message ?? new Response(null, { status: 204 })
    },
    {
      query: Query,
      detail: operation({
        summary: 'Wait for the next message',
        description:
          'Answers as soon as a received message matches all that is given; 204 when none came in time. Without after, only ' +
          'messages that arrive from now on count; with it, the oldest that came later than that moment is answered at ' +
          'once. It can end early when the key changes. To miss none, follow /v0/events.',
        tag: 'Messages',
        access: 'mail:read',
        success: {
          status: 200,
          description: 'The message.',
          schema: WholeMessage,
          example: EXAMPLE_MESSAGE,
        },
      }),
    },
  )
}

/**
 * Waits for a received message that matches.
 * @returns null when none came in time, or the caller went away.
 * @throws {ApiError} 400
 */
export async function waitForMessage(
  services: Services,
  projectId: string,
  wait: { filter: Static<typeof WaitFilter>; timeoutMs: number; signal: AbortSignal },
) {
  const { pool, events } = services
  const filter = readMessageFilter(wait.filter)
  const deadlineMs = performance.now() + wait.timeoutMs
  // Opened before the inbox is looked at, so that nothing slips in between.
  const { reader } = await events.open(projectId, null)
  const leave = () => reader.close()
  wait.signal.addEventListener('abort', leave)
  if (wait.signal.aborted) leave()
  try {
    if (filter.after !== null) {
      const there = await findFirstReceived(pool, { projectId, ...filter, after: filter.after })
      if (there !== null) return toWhole(there)
    }
    for (;;) {
      const arrived = await reader.next(deadlineMs)
      if (arrived.length === 0) return null
      for (const { type, data } of arrived) {
        if (type !== 'message.received' || !fits(data as MessageEventData, filter)) continue
        const message = await findMessage(pool, projectId, (data as MessageEventData).messageId)
        if (message !== null) return toWhole(message)
      }
    }
  } finally {
    wait.signal.removeEventListener('abort', leave)
    reader.close()
  }
}

const fits = (message: MessageEventData, { labels, queries }: MessageFilter): boolean =>
  labels.every((label) => message.labels.includes(label)) &&
  queries.every((query) => holdsIn(query, { subject: [message.subject], from: message.from }))
