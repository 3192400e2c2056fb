import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { type Cursor, encodeCursor } from '../../../shared/cursor.ts'
import type { Pool } from '../../../sql/db.ts'
import { listThreadMessages } from '../../../sql/mail/messages/messages.ts'
import { findThread, listThreads, type Thread } from '../../../sql/mail/messages/threads.ts'
import { notFound } from '../../http/errors.ts'
import { operation, PageQuery, Time } from '../../http/operation.ts'
import { readPage } from '../../http/page.ts'
import { projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { toWhole, WholeMessage } from './messageDocs.ts'
import { EXAMPLE_MESSAGE } from './messageRoutes.ts'

export const THREAD_MESSAGES_DEFAULT = 200
export const THREAD_MESSAGES_MAX = 500

export const ThreadParams = t.Object({ threadId: t.String({ minLength: 1, maxLength: 100 }) })

const ThreadHead = t.Object({
  threadId: t.String(),
  inboxId: t.String(),
  subject: t.String({ description: 'The first message has this subject.' }),
  createdAt: Time,
  updatedAt: t.String({
    format: 'date-time',
    description: 'The latest message was added at this time.',
  }),
})

const ThreadItem = t.Composite([ThreadHead, t.Object({ messageCount: t.Integer() })])
/** Describes a thread with its messages. */
export const WholeThread = t.Composite([
  ThreadHead,
  t.Object({ totalMessages: t.Integer(), messages: t.Array(WholeMessage) }),
])

/** Describes one page of threads. */
export const ThreadPage = t.Object({
  threads: t.Array(ThreadItem),
  count: t.Integer(),
  nextPageToken: t.Optional(t.String()),
})

const EXAMPLE_HEAD = {
  threadId: EXAMPLE_MESSAGE.threadId,
  inboxId: EXAMPLE_MESSAGE.inboxId,
  subject: 'Offer',
  createdAt: '2026-01-05T09:30:00.000Z',
  updatedAt: EXAMPLE_MESSAGE.createdAt,
}

/** Holds an example of a thread for the documentation. */
export const EXAMPLE_THREAD = { ...EXAMPLE_HEAD, totalMessages: 1, messages: [EXAMPLE_MESSAGE] }

const toHead = (thread: Thread) => ({
  threadId: thread.threadId,
  inboxId: thread.inboxAddress,
  subject: thread.subject,
  createdAt: thread.createdAt.toISOString(),
  updatedAt: thread.updatedAt.toISOString(),
})

/** Lists and reads the conversations of an inbox. */
export function threadRoutes(services: Services) {
  return new Elysia()
    .get(
      '/v0/threads',
      ({ request, query }) =>
        services.reads.run(request, ({ pool }) =>
          readThreads(pool, { projectId: projectOf(request).projectId, ...readPage(query) }),
        ),
      {
        query: PageQuery,
        detail: operation({
          summary: 'List threads, the most recently updated first',
          tag: 'Threads',
          access: 'mail:read',
          success: {
            status: 200,
            description: 'One page of threads.',
            schema: ThreadPage,
            example: { threads: [{ ...EXAMPLE_HEAD, messageCount: 2 }], count: 1 },
          },
        }),
      },
    )
    .get(
      '/v0/threads/:threadId',
      ({ request, params, query }) =>
        readThread(services, {
          projectId: projectOf(request).projectId,
          threadId: params.threadId,
          limit: Math.min(Number(query.limit ?? THREAD_MESSAGES_DEFAULT), THREAD_MESSAGES_MAX),
        }),
      {
        params: ThreadParams,
        query: t.Pick(PageQuery, ['limit']),
        detail: operation({
          summary: 'Get a thread with its messages',
          description: `Shows the newest messages, oldest first: ${THREAD_MESSAGES_DEFAULT}, or limit (at most ${THREAD_MESSAGES_MAX}), and at most 8 MB of text. totalMessages counts all.`,
          tag: 'Threads',
          access: 'mail:read',
          success: {
            status: 200,
            description: 'The thread.',
            schema: WholeThread,
            example: EXAMPLE_THREAD,
          },
          errors: { 404: 'Thread not found' },
        }),
      },
    )
}

/**
 * Returns one page of an inbox's threads, sorted by their last update. The thread with the newest update comes first.
 */
export async function readThreads(
  pool: Pool,
  filter: { projectId: string; limit: number; cursor: Cursor | null },
): Promise<Static<typeof ThreadPage>> {
  const { threads, next } = await listThreads(pool, filter)
  const items = threads.map((thread) => ({
    ...toHead(thread),
    messageCount: thread.messageCount,
  }))
  const page = { threads: items, count: items.length }
  return next === null ? page : { ...page, nextPageToken: encodeCursor(next) }
}

/** Returns a thread with its newest `limit` messages, from old to new. @throws {ApiError} 404 for an unknown thread. */
export async function readThread(
  { pool, config }: Pick<Services, 'pool' | 'config'>,
  wanted: { projectId: string; threadId: string; limit: number },
) {
  const thread = await findThread(pool, wanted.projectId, wanted.threadId)
  if (thread === null) throw notFound('Thread not found')
  const messages = await listThreadMessages(pool, { threadRow: thread.row, limit: wanted.limit })
  return {
    ...toHead(thread),
    totalMessages: thread.messageCount,
    messages: messages.map((message) => toWhole(message, config.answers)),
  }
}
