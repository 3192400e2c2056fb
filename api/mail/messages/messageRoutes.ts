import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Cursor } from '../../../shared/cursor.ts'
import { writeAudit } from '../../../sql/account/audit.ts'
import type { Queryable } from '../../../sql/db.ts'
import { findEventStates } from '../../../sql/mail/calendar/calendarEvents.ts'
import { listMessages, type SingleMessage } from '../../../sql/mail/messages/messages.ts'
import { searchMessages } from '../../../sql/mail/search/searchMessages.ts'
import { notFound } from '../../http/errors.ts'
import { operation, PageQuery } from '../../http/operation.ts'
import { nextPage, readPage } from '../../http/page.ts'
import { type Caller, callerOf, partyOf, projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { toInvite } from '../calendar/inviteDocs.ts'
import { FoundMessage, SingleMessageSchema, toFound, toItem, toSingle } from './messageDocs.ts'
import { type MessageFilter, MessageFilterQuery, readMessageFilter } from './messageFilter.ts'

/**
 * Describes the message id in the path of a URL. A Message-ID has at most 998 characters (RFC 5322 §2.1.1). If an id
 * occurs twice in an inbox, the id of the duplicate gets the suffix `.N` (docs/contract.md §4).
 */
export const MessageParams = t.Object({ messageId: t.String({ minLength: 1, maxLength: 1_100 }) })

const ListQuery = t.Composite([PageQuery, MessageFilterQuery])

/** Describes one page of messages. */
export const MessagePage = t.Object({
  messages: t.Array(FoundMessage),
  count: t.Integer(),
  nextPageToken: t.Optional(t.String()),
})

const EXAMPLE_ITEM = {
  messageId: '<CAF+x=1@mail.example.com>',
  threadId: 'thd_0a1b2c3d4e5f60718293a4b5',
  from: ['ada@example.com'],
  to: ['agent@mail.example.com'],
  subject: 'Re: Offer',
  text: 'Yes, please.\n\nOn Mon, Jan 5, 2026 at 9:30 AM Agent wrote:\n> Shall I order?',
  extractedText: 'Yes, please.',
  labels: ['received', 'unread'],
  createdAt: '2026-01-05T09:41:12.345Z',
}

/** Holds an example of a whole message for the documentation. */
export const EXAMPLE_MESSAGE = {
  ...EXAMPLE_ITEM,
  inboxId: 'agent@mail.example.com',
  cc: [],
  attachments: [],
}

/** Holds an example of a received message with a code for the documentation. */
export const EXAMPLE_SINGLE = {
  ...EXAMPLE_MESSAGE,
  subject: 'Sign in',
  text: 'Your code is 482 913.',
  extractedText: 'Your code is 482 913.',
  codes: [
    {
      kind: 'numeric',
      value: '482913',
      confidence: 0.92,
      part: 'text',
      line: 'Your code is 482 913.',
    },
  ],
  links: [],
}

/** Lists, searches and reads the messages of an inbox. */
export function messageRoutes(services: Services) {
  return new Elysia()
    .get(
      '/v0/messages',
      ({ request, query }) =>
        services.reads.run(request, (server) =>
          readMessages(
            { ...services, ...server },
            {
              projectId: projectOf(request).projectId,
              ...readMessageFilter(query),
              ...readPage(query),
            },
            partyOf(request)!,
          ),
        ),
      {
        query: ListQuery,
        detail: operation({
          summary: 'List or search messages, newest first',
          description:
            'One page carries at most 8 MB of text, so a page can be shorter than limit. There are more messages exactly ' +
            'when the answer has nextPageToken.',
          tag: 'Messages',
          access: 'mail:read',
          success: {
            status: 200,
            description: 'One page of messages.',
            schema: MessagePage,
            example: { messages: [EXAMPLE_ITEM], count: 1 },
          },
        }),
      },
    )
    .get(
      '/v0/messages/:messageId',
      ({ request, params }) => readMessage(services, callerOf(request), params.messageId),
      {
        params: MessageParams,
        detail: operation({
          summary: 'Get a message',
          description: 'With the scope mail:codes also its one-time codes and its links.',
          tag: 'Messages',
          access: 'mail:read',
          success: {
            status: 200,
            description: 'The message.',
            schema: SingleMessageSchema,
            example: EXAMPLE_SINGLE,
          },
          errors: { 404: 'Message not found' },
        }),
      },
    )
}

/**
 * Returns one page of an inbox's messages, newest first. A message in search results also holds excerpts with the
 * searched words.
 * @param party is the party for which a search runs, because the parties take turns. By default it is the project.
 */
export async function readMessages(
  { pool, searches, config: { answers } }: Pick<Services, 'pool' | 'searches' | 'config'>,
  filter: MessageFilter & { projectId: string; limit: number; cursor: Cursor | null },
  party = filter.projectId,
): Promise<Static<typeof MessagePage>> {
  const { queries, labels } = filter
  const isSearch = queries.length > 0
  const read = isSearch ? searchMessages : listMessages
  // A read with several labels may scan a large part of an inbox. For example, each of the labels may be on a million
  // messages, but no message may have all of them. The same is true for a read with a label and a status. Therefore
  // such a read, like a search, waits until it is the project's turn.
  const { messages, more } = await (isSearch ||
  labels.length > 1 ||
  (filter.deliveryStatus ?? null) !== null
    ? searches.run(party, (db) => read(db, filter))
    : read(pool, filter))
  const items = messages.map((one) =>
    isSearch ? toFound(one, queries, answers) : toItem(one, answers),
  )
  const next = nextPage(messages, more, ({ createdAt }) => createdAt)
  return { messages: items, count: items.length, ...next }
}

/** Returns one message in the form of the API. @throws {ApiError} 404 for an unknown message. */
export async function readMessage(services: Services, caller: Caller, messageId: string) {
  return await answerSingle(services, caller, await readStored(services, caller, messageId))
}

/** Returns one message in the form in which the database holds it. @throws {ApiError} 404 for an unknown message. */
export async function readStored(
  services: Services,
  { projectId }: { projectId: string },
  messageId: string,
): Promise<SingleMessage> {
  const message = await services.messages.submit({ projectId, messageId })
  if (message === null) throw notFound('Message not found')
  return message
}

/** Returns the calendar invitations in a message. Each invitation has its current state. */
async function invitesOf(
  db: Queryable,
  { invites }: SingleMessage,
  { projectId }: { projectId: string },
) {
  const known = invites ?? []
  const events = await findEventStates(db, projectId, known)
  return known.map((invite, n) => toInvite(invite, events[n] ?? null))
}

/**
 * Returns a message with the data that the caller may see. If the message holds a one-time code or a sensitive link,
 * the service first writes an audit log entry.
 */
export async function answerSingle(
  { pool, config }: Pick<Services, 'pool' | 'config'>,
  caller: Caller,
  message: SingleMessage,
) {
  const single = toSingle(message, config.answers, caller)
  const answer =
    message.invites === null
      ? single
      : { ...single, invites: await invitesOf(pool, message, caller) }
  const { codes = [], links = [] } = answer
  if (codes.length > 0 || links.some(({ sensitive }) => sensitive)) {
    await writeAudit(pool, caller, {
      action: 'message.codes',
      subject: message.messageId,
      outcome: 'ok',
    })
  }
  return answer
}
