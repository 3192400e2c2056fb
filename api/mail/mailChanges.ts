import type { Static } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Pool } from '../../sql/db.ts'
import { deleteMessage, deleteThread } from '../../sql/mail/deleteMail.ts'
import { TooManyLabelsError, updateLabels } from '../../sql/mail/messages.ts'
import { updateThreadLabels } from '../../sql/mail/threads.ts'
import { notFound } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { projectOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { LabelChange, readLabelChange, tooManyLabels } from './labels.ts'
import { EXAMPLE_MESSAGE, MessageParams } from './messages.ts'
import { toWhole, WholeMessage } from './messageView.ts'
import {
  EXAMPLE_THREAD,
  readThread,
  THREAD_MESSAGES_DEFAULT,
  ThreadParams,
  WholeThread,
} from './threads.ts'

/** Label and delete messages and threads. */
export function mailChangeRoutes({ pool }: Services) {
  return new Elysia()
    .patch(
      '/v0/messages/:messageId',
      ({ request, params, body }) =>
        changeLabels(pool, projectOf(request).projectId, params.messageId, body),
      {
        params: MessageParams,
        body: LabelChange,
        detail: operation({
          summary: 'Add and remove labels',
          description:
            'Adding read removes unread, and the reverse. What is in both lists is removed.',
          tag: 'Messages',
          access: 'mail:manage',
          requestExample: { addLabels: ['read'], removeLabels: ['unread'] },
          success: {
            status: 200,
            description: 'The message with its labels afterwards.',
            schema: WholeMessage,
            example: { ...EXAMPLE_MESSAGE, labels: ['received', 'read'] },
          },
          errors: { 404: 'Message not found' },
        }),
      },
    )
    .patch(
      '/v0/threads/:threadId',
      ({ request, params, body }) =>
        changeThreadLabels(pool, projectOf(request).projectId, params.threadId, body),
      {
        params: ThreadParams,
        body: LabelChange,
        detail: operation({
          summary: 'Add and remove labels on every message of a thread',
          description: 'All of them, or none where one would get too many.',
          tag: 'Threads',
          access: 'mail:manage',
          requestExample: { addLabels: ['read'] },
          success: {
            status: 200,
            description: 'The thread afterwards, as get-thread shows it.',
            schema: WholeThread,
            example: EXAMPLE_THREAD,
          },
          errors: { 404: 'Thread not found' },
        }),
      },
    )
    .delete(
      '/v0/messages/:messageId',
      async ({ request, params }) => {
        const { projectId } = projectOf(request)
        if (!(await deleteMessage(pool, projectId, params.messageId))) {
          throw notFound('Message not found')
        }
        return new Response(null, { status: 204 })
      },
      {
        params: MessageParams,
        detail: operation({
          summary: 'Delete a message',
          description:
            'For good, with attachments and original. One that is still queued is not sent; a thread goes with its last message.',
          tag: 'Messages',
          access: 'mail:manage',
          success: { status: 204, description: 'The message is gone.' },
          errors: { 404: 'Message not found' },
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
          success: { status: 204, description: 'The thread is gone.' },
          errors: { 404: 'Thread not found' },
        }),
      },
    )
}

/** Adds and removes labels. @throws {ApiError} 400 for a change that cannot be made, 404 */
export async function changeLabels(
  pool: Pool,
  projectId: string,
  messageId: string,
  body: Static<typeof LabelChange>,
) {
  const change = readLabelChange(body)
  try {
    const message = await updateLabels(pool, { projectId, messageId, ...change })
    if (message === null) throw notFound('Message not found')
    return toWhole(message)
  } catch (error) {
    throw error instanceof TooManyLabelsError ? tooManyLabels() : error
  }
}

async function changeThreadLabels(
  pool: Pool,
  projectId: string,
  threadId: string,
  body: Static<typeof LabelChange>,
) {
  const change = readLabelChange(body)
  try {
    const found = await updateThreadLabels(pool, { projectId, threadId, ...change })
    if (!found) throw notFound('Thread not found')
  } catch (error) {
    throw error instanceof TooManyLabelsError ? tooManyLabels() : error
  }
  return readThread(pool, { projectId, threadId, limit: THREAD_MESSAGES_DEFAULT })
}
