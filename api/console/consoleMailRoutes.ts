import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { findProject } from '../../sql/account/projects/projects.ts'
import { listHtmlMessages } from '../../sql/mail/messages/messageHtml.ts'
import { listMessages } from '../../sql/mail/messages/messages.ts'
import { readThreadDigests } from '../../sql/mail/messages/threadDigests.ts'
import { searchMessages } from '../../sql/mail/search/searchMessages.ts'
import { notFound } from '../http/errors.ts'
import { peopleOf } from '../http/limits/loopTime.ts'
import { PageQuery } from '../http/operation.ts'
import { nextPage, readPage } from '../http/page.ts'
import type { Services } from '../http/services.ts'
import { ReviewQuery, readReviewPage } from '../mail/approval/heldReview.ts'
import { toWhole } from '../mail/messages/messageDocs.ts'
import { MessageFilterQuery, readMessageFilter } from '../mail/messages/messageFilter.ts'
import { MessageParams } from '../mail/messages/messageRoutes.ts'
import {
  readThread,
  readThreads,
  THREAD_MESSAGES_DEFAULT,
  ThreadParams,
} from '../mail/messages/threadRoutes.ts'
import { framedMail } from './approval/framedMail.ts'
import { consoleOperation } from './consoleOperation.ts'

const Project = t.Object({ projectId: t.String({ minLength: 1, maxLength: 100 }) })

const OutgoingQuery = t.Composite([
  PageQuery,
  t.Pick(MessageFilterQuery, ['q', 'to', 'after', 'before', 'deliveryStatus']),
])

/**
 * Serves the mail routes that only the console uses. They never mark a message as read, because this mark belongs to
 * the agent.
 */
export function consoleMailRoutes(services: Services) {
  const { pool, searches } = services
  /**
   * Refuses console requests for the mail of a deleted project. The mail may still be there, because its erasure takes
   * time.
   */
  const refuseDeleted = async (projectId: string) => {
    if ((await findProject(pool, projectId)) === null) throw notFound('Project not found')
  }
  return new Elysia({ prefix: '/console/api/projects/:projectId' })
    .get(
      '/threads',
      async ({ params, query }) => {
        const { projectId } = params
        await refuseDeleted(projectId)
        const page = await readThreads(pool, { projectId, ...readPage(query) })
        const threadIds = page.threads.map(({ threadId }) => threadId)
        const digests = await readThreadDigests(pool, { projectId, threadIds })
        const threads = page.threads.map((thread) => ({
          ...thread,
          ...digests.get(thread.threadId),
        }))
        return { ...page, threads }
      },
      { params: Project, query: PageQuery, detail: consoleOperation('viewer') },
    )
    .get(
      '/threads/:threadId',
      async ({ params }) => {
        await refuseDeleted(params.projectId)
        const [thread, withHtml] = await Promise.all([
          readThread(services, { ...params, limit: THREAD_MESSAGES_DEFAULT }),
          listHtmlMessages(pool, params),
        ])
        return { ...thread, withHtml }
      },
      { params: t.Composite([Project, ThreadParams]), detail: consoleOperation('viewer') },
    )
    .get(
      '/outgoing',
      async ({ params, query }) => {
        const { projectId } = params
        await refuseDeleted(projectId)
        const given = readMessageFilter(query)
        const filter = { projectId, ...given, labels: ['sent'], ...readPage(query) }
        const isSearch = given.queries.length > 0
        const { messages, more } = await (isSearch || query.deliveryStatus !== undefined
          ? searches.run(peopleOf(projectId), (db) =>
              (isSearch ? searchMessages : listMessages)(db, filter),
            )
          : listMessages(pool, filter))
        return {
          messages: messages.map((message) => ({
            ...toWhole(message, 'standard'),
            text: undefined,
          })),
          ...nextPage(messages, more, ({ createdAt }) => createdAt),
        }
      },
      { params: Project, query: OutgoingQuery, detail: consoleOperation('viewer') },
    )
    .get(
      '/messages/:messageId/html',
      async ({ params }) => {
        await refuseDeleted(params.projectId)
        const framed = await framedMail(services, params)
        if (framed === null) throw notFound('Message not found, or it has no HTML body')
        return framed
      },
      {
        params: t.Composite([Project, MessageParams]),
        detail: consoleOperation('viewer', { framed: true }),
      },
    )
    .get(
      '/held/:approvalId/review',
      ({ params, query }) => readReviewPage(services, params, query),
      {
        params: t.Composite([
          Project,
          t.Object({ approvalId: t.String({ minLength: 1, maxLength: 64 }) }),
        ]),
        query: ReviewQuery,
        detail: consoleOperation('viewer'),
      },
    )
}
