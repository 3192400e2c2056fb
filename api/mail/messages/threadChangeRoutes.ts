import type { Static } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { deleteThread } from '../../../sql/mail/messages/deleteMail.ts'
import { TooManyLabelsError } from '../../../sql/mail/messages/messageLabels.ts'
import { updateThreadLabels } from '../../../sql/mail/messages/threads.ts'
import { notFound } from '../../http/errors.ts'
import { operation } from '../../http/operation.ts'
import { partyOf, projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { LabelChange, readLabelChange, tooManyLabels } from './labels.ts'
import {
  EXAMPLE_THREAD,
  readThread,
  THREAD_MESSAGES_DEFAULT,
  ThreadParams,
  WholeThread,
} from './threadRoutes.ts'

/** Serves changes of the labels of threads, and deletions of threads. */
export function threadChangeRoutes(services: Services) {
  const { pool } = services
  return new Elysia()
    .patch(
      '/v0/threads/:threadId',
      ({ request, params: { threadId }, body }) => {
        const { projectId } = projectOf(request)
        const about = { projectId, threadId, party: partyOf(request)! }
        return changeThreadLabels(services, about, body)
      },
      {
        params: ThreadParams,
        body: LabelChange,
        detail: operation({
          summary: 'Add and remove labels on every message of a thread',
          description:
            'Changes all messages. If one message would get more than 50 labels, no message changes.',
          tag: 'Threads',
          access: 'mail:manage',
          requestExample: { addLabels: ['read'], removeLabels: ['unread'] },
          success: {
            status: 200,
            description: 'The thread with its new labels.',
            schema: WholeThread,
            example: EXAMPLE_THREAD,
          },
          errors: { 404: 'Thread not found' },
        }),
      },
    )
    .delete(
      '/v0/threads/:threadId',
      async ({ request, params }) => {
        const { projectId } = projectOf(request)
        if (!(await deleteThread(pool, projectId, params.threadId))) {
          throw notFound('Thread not found')
        }
        return new Response(null, { status: 204 })
      },
      {
        params: ThreadParams,
        detail: operation({
          summary: 'Delete a thread with all its messages',
          tag: 'Threads',
          access: 'mail:manage',
          success: { status: 204, description: 'The thread is deleted.' },
          errors: { 404: 'Thread not found' },
        }),
      },
    )
}

async function changeThreadLabels(
  services: Services,
  { projectId, threadId, party }: { projectId: string; threadId: string; party: string },
  body: Static<typeof LabelChange>,
) {
  const change = readLabelChange(body)
  return await services.answers.change(party, async () => {
    try {
      await updateThreadLabels(services.pool, { projectId, threadId, ...change })
    } catch (error) {
      throw error instanceof TooManyLabelsError ? tooManyLabels() : error
    }
    return readThread(services, { projectId, threadId, limit: THREAD_MESSAGES_DEFAULT })
  })
}
