import type { Static } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { deleteMessage } from '../../../sql/mail/messages/deleteMail.ts'
import { TooManyLabelsError, updateLabels } from '../../../sql/mail/messages/messageLabels.ts'
import { notFound } from '../../http/errors.ts'
import { operation } from '../../http/operation.ts'
import { partyOf, projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { LabelChange, readLabelChange, tooManyLabels } from './labels.ts'
import { toWhole, WholeMessage } from './messageDocs.ts'
import { EXAMPLE_MESSAGE, MessageParams } from './messageRoutes.ts'

/** Serves changes of the labels of messages, and deletions of messages. */
export function messageChangeRoutes(services: Services) {
  const { pool } = services
  return new Elysia()
    .patch(
      '/v0/messages/:messageId',
      ({ request, params: { messageId }, body }) => {
        const { projectId } = projectOf(request)
        return changeLabels(services, projectId, messageId, body, partyOf(request)!)
      },
      {
        params: MessageParams,
        body: LabelChange,
        detail: operation({
          summary: 'Add and remove labels',
          description:
            'Listed labels are added, and listed labels removed; nothing else changes. A label in both lists is removed.',
          tag: 'Messages',
          access: 'mail:manage',
          requestExample: { addLabels: ['read'], removeLabels: ['unread'] },
          success: {
            status: 200,
            description: 'The message with its new labels.',
            schema: WholeMessage,
            example: { ...EXAMPLE_MESSAGE, labels: ['received', 'read'] },
          },
          errors: { 404: 'Message not found' },
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
            'Deletes the message, its attachments and its original permanently. A queued message is not sent. Deleting the last message deletes the thread.',
          tag: 'Messages',
          access: 'mail:manage',
          success: { status: 204, description: 'The message is deleted.' },
          errors: { 404: 'Message not found' },
        }),
      },
    )
}

/**
 * Adds and removes the labels of a message.
 * @param party names the caller whose memory limit counts the response. By default it is the project.
 * @throws {ApiError} 400 for an invalid change, 404 for an unknown message.
 */
export async function changeLabels(
  { pool, config, answers }: Services,
  projectId: string,
  messageId: string,
  body: Static<typeof LabelChange>,
  party = projectId,
) {
  const change = readLabelChange(body)
  try {
    const message = await answers.change(party, () =>
      updateLabels(pool, { projectId, messageId, ...change }),
    )
    if (message === null) throw notFound('Message not found')
    return toWhole(message, config.answers)
  } catch (error) {
    throw error instanceof TooManyLabelsError ? tooManyLabels() : error
  }
}
