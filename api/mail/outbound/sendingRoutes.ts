import { Elysia } from 'elysia'
import { readIdempotencyKey } from '../../http/input/idempotencyKey.ts'
import { callerOf, projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { draftRoutes } from '../approval/draftRoutes.ts'
import { MessageParams } from '../messages/messageRoutes.ts'
import { cancelRoutes } from './cancelRoutes.ts'
import { ReplyBody, SendBody } from './sendInput.ts'
import { replyTo, sendMessage } from './sending.ts'
import { replyOperation, sendOperation } from './sendingDocs.ts'

const keyOf = (request: Request) => readIdempotencyKey(request.headers.get('idempotency-key'))

/**
 * Serves the routes that send mails and replies. One database transaction stores a message together with its sending
 * job. A worker sends the message after this transaction has committed.
 */
export function sendingRoutes(services: Services) {
  return new Elysia()
    .use(cancelRoutes(services))
    .use(draftRoutes(services))
    .post(
      '/v0/messages/send',
      async ({ request, body, set }) => {
        const sent = await sendMessage(services, projectOf(request), body, {
          key: keyOf(request),
          held: callerOf(request).holdsMail,
        })
        set.status = 201
        return sent
      },
      {
        body: SendBody,
        detail: sendOperation,
      },
    )
    .post(
      '/v0/messages/:messageId/reply',
      async ({ request, params, body, set }) => {
        const { projectId } = projectOf(request)
        const reply = { ...body, messageId: params.messageId }
        const sent = await replyTo(services, projectId, reply, {
          key: keyOf(request),
          held: callerOf(request).holdsMail,
        })
        set.status = 201
        return sent
      },
      {
        params: MessageParams,
        body: ReplyBody,
        detail: replyOperation,
      },
    )
}
