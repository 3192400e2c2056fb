import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { EventType, MessageEventData } from '../../../shared/events/events.ts'
import { mayBeCut } from '../../../shared/events/messageWithin.ts'
import { holdsIn } from '../../../shared/mail/search/searchQuery.ts'
import { findMessage } from '../../../sql/mail/messages/messages.ts'
import { type Awaited, findFirstReceived } from '../../../sql/mail/search/findFirstReceived.ts'
import { ApiError, badRequest } from '../../http/errors.ts'
import { operation } from '../../http/operation.ts'
import { type Caller, callerOf, stateOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { CODES_SCOPE, SingleMessageSchema } from './messageDocs.ts'
import { type MessageFilter, MessageFilterQuery, readMessageFilter } from './messageFilter.ts'
import { answerSingle, EXAMPLE_SINGLE } from './messageRoutes.ts'

const READ_SCOPE = 'mail:read'
const TIMEOUT_DEFAULT_S = 30
const TIMEOUT_MAX_S = 60

/** Describes the filters of a call that waits for a message. The message must match all filters. */
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
        description: 'The request waits at most this many seconds.',
      }),
    ),
  }),
  WaitFilter,
  t.Object({
    has: t.Optional(
      t.Union([t.Literal('code'), t.Literal('text'), t.Literal('invite')], {
        error: 'be "code", "text" or "invite"',
        description:
          '`code` waits for a message with a one-time code, and the key also needs the scope mail:codes. `text` waits for a message ' +
          'with an attachment whose text was read. `invite` waits for a message with an invitation, an update, a cancellation or an answer.',
      }),
    ),
  }),
])

/** Serves the route `/v0/messages/wait`, which waits for the next message that matches the filters (long polling). */
export function messageWaitRoutes(services: Services) {
  return new Elysia().get(
    '/v0/messages/wait',
    async ({ request, query }) => {
      const timeoutS = Number(query.timeout ?? TIMEOUT_DEFAULT_S)
      if (timeoutS > TIMEOUT_MAX_S) {
        throw badRequest(`timeout must be a whole number of seconds, at most ${TIMEOUT_MAX_S}`)
      }
      const message = await waitForMessage(services, request, {
        filter: query,
        has: query.has ?? null,
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
          'Answers as soon as a received message matches all filters. Without after, only new ' +
          'messages count. With after, it answers the oldest received message since that time at once. A change of the key ' +
          'ends the wait early. With has=code, only a message with a one-time code counts. With has=text, only a message with an ' +
          'attachment whose text was read counts. To receive every message, follow /v0/events.',
        tag: 'Messages',
        access: 'mail:read',
        success: {
          status: 200,
          description: 'The message.',
          schema: SingleMessageSchema,
          example: EXAMPLE_SINGLE,
        },
        alsoAnswer: { status: 204, description: 'No message came before the timeout.' },
      }),
    },
  )
}

/**
 * Maps each kind of content for which a caller can wait to the type of the event that announces a message with such
 * content.
 */
const AWAITED: Record<'message' | NonNullable<Awaited>, EventType> = {
  message: 'message.received',
  code: 'message.code',
  text: 'attachment.read',
  invite: 'message.invite',
}

/**
 * Waits for a received message that matches the filters.
 * @returns the message for which the caller has waited, or `null` after the timeout or if the caller has disconnected.
 * @throws {ApiError} 400 for invalid filters, 401 if the caller's key or token is no longer valid, 403 for a missing
 * scope.
 */
export async function waitForMessage(
  services: Services,
  request: Request,
  wait: {
    filter: Static<typeof WaitFilter>
    has?: Awaited
    timeoutMs: number
    signal: AbortSignal
  },
) {
  const { pool, events, searches } = services
  const { has = null } = wait
  const { projectId } = allowedCaller(request, has)
  const filter = readMessageFilter(wait.filter)
  const deadlineMs = performance.now() + wait.timeoutMs
  // The reader of the project's events opens before the function reads the inbox. Otherwise the wait could miss a
  // message that arrives between these two steps.
  const { reader } = await events.open(projectId, null)
  const awaited = AWAITED[has ?? 'message']
  const leave = () => reader.close()
  wait.signal.addEventListener('abort', leave)
  if (wait.signal.aborted) leave()
  try {
    // The owner may have changed the API key after its check and before the event reader was open. Therefore the code
    // checks the API key again. A later change of the API key ends the event reader.
    await stateOf(request).admitAgain?.()
    const caller = allowedCaller(request, has)
    if (filter.after !== null) {
      const { after } = filter
      const there = await searches.run(projectId, (db) =>
        findFirstReceived(db, { projectId, ...filter, after, has }),
      )
      const message = there && (await findMessage(pool, projectId, there.messageId))
      if (message !== null) return await answerSingle(services, caller, message)
    }
    // The code remembers a message that did not match the filters. Otherwise it would read the whole message again for
    // each of the message's events, and a message may have up to 1,000 events in a row.
    let unfitting: string | null = null
    for (;;) {
      const arrived = await reader.next(deadlineMs)
      if (arrived.length === 0) {
        // If the owner revokes the API key, the event reader ends early. In this case, the following check returns 401
        // to the caller.
        if (!wait.signal.aborted) await stateOf(request).admitAgain?.()
        return null
      }
      for (const { type, data } of arrived) {
        if (type !== awaited) continue
        const event = data as MessageEventData
        if (has === 'text' && event.attachment?.state !== 'ready') continue
        if (!fits(event, filter) && (!mayBeCut(event) || event.messageId === unfitting)) continue
        const message = await findMessage(pool, projectId, event.messageId)
        if (message === null) continue
        if (fits(event, filter) || fits(message, filter)) {
          // The code checks the key or token again before the response, because no notification announces that an OAuth
          // access token has expired.
          await stateOf(request).admitAgain?.()
          return await answerSingle(services, allowedCaller(request, has), message)
        }
        unfitting = event.messageId
      }
    }
  } finally {
    wait.signal.removeEventListener('abort', leave)
    reader.close()
  }
}

/** Returns the caller that waits for a message. @throws {ApiError} 403 if the caller lacks a scope. */
function allowedCaller(request: Request, has: Awaited | null): Caller {
  const caller = callerOf(request)
  const wanted = has === 'code' ? [READ_SCOPE, CODES_SCOPE] : [READ_SCOPE]
  const missing = wanted.find((scope) => !caller.scopes.includes(scope))
  if (missing === undefined) return caller
  throw new ApiError(403, 'forbidden', `Missing required scope: ${missing}`)
}

const fits = (
  message: Pick<MessageEventData, 'labels' | 'subject' | 'from'>,
  { labels, queries }: MessageFilter,
): boolean =>
  labels.every((label) => message.labels.includes(label)) &&
  queries.every((query) => holdsIn(query, { subject: [message.subject], from: message.from }))
