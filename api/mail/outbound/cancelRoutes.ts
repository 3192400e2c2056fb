import { Elysia } from 'elysia'
import { cancelMail } from '../../../sql/mail/outbound/cancelMail.ts'
import { conflict, notFound } from '../../http/errors.ts'
import { operation } from '../../http/operation.ts'
import { type Caller, callerOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { toWhole, WholeMessage } from '../messages/messageDocs.ts'
import { EXAMPLE_MESSAGE, MessageParams, readStored } from '../messages/messageRoutes.ts'

/** Serves the cancellation of mail that waits for its sending time or for its owner's approval. */
export const cancelRoutes = (services: Services) =>
  new Elysia().post(
    '/v0/messages/:messageId/cancel',
    ({ request, params }) => cancel(services, callerOf(request), params.messageId),
    {
      params: MessageParams,
      detail: operation({
        summary: 'Cancel a scheduled message, or withdraw a held one',
        description:
          'Its recipients no longer count for the daily limit of the day of the call. Cancelling twice changes nothing.',
        tag: 'Messages',
        access: 'mail:send',
        success: {
          status: 200,
          description: 'The message, which is not sent.',
          schema: WholeMessage,
          example: {
            ...EXAMPLE_MESSAGE,
            labels: ['sent'],
            deliveryStatus: 'cancelled',
            deliveryError: 'cancelled before its time',
            sendAt: '2026-01-31T09:30:00.000Z',
          },
        },
        errors: { 404: 'Message not found', 409: 'The message does not wait: it is on its way' },
      }),
    },
  )

/**
 * Cancels a message that waits for its sending time or for an approval. @throws {ApiError} 404 for an unknown message,
 * 409 if the message no longer waits.
 */
export async function cancel(services: Services, caller: Caller, messageId: string) {
  const end = await cancelMail(services.pool, caller, messageId)
  if (end === 'not found') throw notFound('Message not found')
  if (end === 'too late') {
    throw conflict('Only a scheduled or held message can be cancelled: read its deliveryStatus')
  }
  return toWhole(await readStored(services, caller, messageId), services.config.answers)
}
