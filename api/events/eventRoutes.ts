import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import {
  EVENT_ID_MAX_LENGTH,
  type EventPosition,
  eventId,
  parseEventId,
} from '../../shared/events/eventId.ts'
import { EVENT_SCOPES, EVENT_TYPES, type EventType } from '../../shared/events/events.ts'
import { findKeyScopes } from '../../sql/account/keys/keys.ts'
import type { StoredEvent } from '../../sql/events/events.ts'
import { ApiError, badRequest } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { identityOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import type { EventReader } from './eventFeed.ts'

/**
 * Sets the milliseconds between two keep-alive lines of an event stream. Without such lines, proxies and clients would
 * consider a silent connection dead.
 */
const KEEP_ALIVE_MS = 15_000
/** Holds the value of the `retry` field: the number of milliseconds that a client waits before it reconnects. */
const RETRY_MS = 2_000

const Query = t.Object({
  types: t.Optional(
    t.String({
      maxLength: 500,
      description: `Separate the event types with commas: ${EVENT_TYPES.join(', ')}. The default is all types that the scopes of the key allow.`,
      examples: ['message.received,payment.settled'],
    }),
  ),
  lastEventId: t.Optional(
    t.String({
      maxLength: EVENT_ID_MAX_LENGTH,
      description:
        'This parameter replaces the Last-Event-ID header for clients that cannot set headers.',
    }),
  ),
})

const EXAMPLE = `retry: 2000
id: 41-1767605990001

id: 42-1767606072345
event: message.received
data: {"type":"message.received","createdAt":"2026-01-05T09:41:12.345Z","data":{"messageId":"<CAF+x=1@mail.example.com>","threadId":"thd_0a1b2c3d4e5f60718293a4b5","inboxId":"agent@mail.example.com","from":["ada@example.com"],"to":["agent@mail.example.com"],"subject":"Offer","labels":["received","unread"]}}

`

/** Serves the route `/v0/events`, which sends the live events of a project (server-sent events, WHATWG HTML §9.2). */
export function eventRoutes(services: Services) {
  return new Elysia().get(
    '/v0/events',
    async ({ request, query }) => {
      const { projectId, scopes, keyId } = identityOf(request)
      if (projectId === null) {
        throw new ApiError(403, 'forbidden', 'A platform key receives no events: use a project key')
      }
      const types = readTypes(query.types, scopes)
      const last = readLastEventId(request.headers.get('last-event-id') ?? query.lastEventId)
      const { reader, begin, missed } = await services.events.open(projectId, last)
      // The service checks the API key again, because the owner may have replaced it after the first check and before
      // the event reader was open.
      const now = await findKeyScopes(services.pool, keyId).catch((error: unknown) => {
        reader.close()
        throw error
      })
      if (now === null || !types.every((type) => now.includes(EVENT_SCOPES[type]))) {
        reader.close()
        throw new ApiError(401, 'unauthorized', 'Invalid API key')
      }
      const headers = {
        'content-type': 'text/event-stream',
        // The header X-Accel-Buffering turns off the buffer of nginx, which would delay the events.
        'x-accel-buffering': 'no',
      }
      // A HEAD request gets a response without a body. With a body, the response would wait for the end of the event
      // stream, which never comes.
      if (request.method === 'HEAD') {
        reader.close()
        return new Response(null, { headers })
      }
      return new Response(
        eventStream(reader, new Set(types), { begin, missed, signal: request.signal }),
        { headers },
      )
    },
    {
      query: Query,
      detail: operation({
        summary: 'Follow the events of a project (server-sent events)',
        description:
          'The stream begins with the id of the latest earlier event and an empty line. With Last-Event-ID it continues ' +
          'after that event without a gap. Events are kept for 7 days. The stream begins with the event stream.gap if ' +
          'missed events are deleted, or if a restored backup lacks the event of Last-Event-ID. Replacing the key ends the ' +
          'stream.',
        tag: 'Events',
        access: 'key',
        success: {
          status: 200,
          description: 'The stream.',
          contentType: 'text/event-stream',
          schema: t.String(),
          example: EXAMPLE,
        },
        errors: { 403: 'The key lacks the scope of a type, or is a platform key' },
      }),
    },
  )
}

function readTypes(query: string | undefined, scopes: readonly string[]): EventType[] {
  if (query === undefined) return EVENT_TYPES.filter((type) => scopes.includes(EVENT_SCOPES[type]))
  const types = query.split(',').map((type) => type.trim())
  for (const type of types) {
    if (!Object.hasOwn(EVENT_SCOPES, type))
      throw badRequest(`types must be among ${EVENT_TYPES.join(', ')}`)
    const scope = EVENT_SCOPES[type as EventType]
    if (!scopes.includes(scope)) {
      throw new ApiError(403, 'forbidden', `Missing required scope: ${scope}`)
    }
  }
  return types as EventType[]
}

function readLastEventId(text: string | null | undefined): EventPosition | null {
  if (text == null || text === '') return null
  const position = parseEventId(text)
  if (position === null) throw badRequest('Last-Event-ID must be the id of an event')
  return position
}

/** Returns the value of the `data` field with which an event stream sends an event. */
const eventBody = ({ type, data, createdAt }: StoredEvent) => ({
  type,
  createdAt: createdAt.toISOString(),
  data,
})

/** Creates an event stream with back-pressure, which reads events only as fast as the client consumes them. */
function eventStream(
  reader: EventReader,
  types: ReadonlySet<string>,
  { begin, missed, signal }: { begin: EventPosition; missed: boolean; signal: AbortSignal },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  signal.addEventListener('abort', () => reader.close())
  if (signal.aborted) reader.close()
  return new ReadableStream(
    {
      start(controller) {
        const gap = missed ? 'event: stream.gap\ndata: {}\n\n' : ''
        // The event stream begins with an event id. A client that disconnects before its first event can reconnect with
        // this id, and then misses no event.
        const head = `retry: ${RETRY_MS}\nid: ${eventId(begin)}\n\n`
        controller.enqueue(encoder.encode(head + gap))
      },
      async pull(controller) {
        let events: StoredEvent[] = []
        try {
          events = await reader.next(performance.now() + KEEP_ALIVE_MS)
        } catch {
          // While the database is unreachable, the service closes the event stream. The client then reconnects with its
          // last event id.
          reader.close()
        }
        const lines = events.map((event) => {
          const id = eventId({ seq: event.seq, at: event.createdAt })
          // If the API key may not see an event, the stream sends only the event's id. A client that reconnects with
          // this id continues after the hidden event.
          if (!types.has(event.type)) return `id: ${id}\n\n`
          return `id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(eventBody(event))}\n\n`
        })
        if (lines.length > 0) controller.enqueue(encoder.encode(lines.join('')))
        else if (reader.ended) controller.close()
        else controller.enqueue(encoder.encode(': still here\n\n'))
      },
      cancel() {
        reader.close()
      },
    },
    { highWaterMark: 1 },
  )
}
