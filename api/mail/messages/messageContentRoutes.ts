import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import {
  findAttachment,
  findRaw,
  findRawSize,
  type StoredAttachment,
} from '../../../sql/mail/messages/attachments.ts'
import { composedMail, composeOutbound } from '../../../sql/mail/outbound/composedMails.ts'
import { findOutboundContent } from '../../../sql/mail/outbound/outboundMails.ts'
import { ApiError, notFound, originalGone } from '../../http/errors.ts'
import { operation } from '../../http/operation.ts'
import { partyOf, projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { MessageParams } from './messageRoutes.ts'

/**
 * Matches a media type (RFC 6838 §4.2). The API serves an attachment without a valid media type as
 * `application/octet-stream`.
 */
const MEDIA_TYPE = /^[a-z0-9][\w!#$&^.+-]{0,126}\/[a-z0-9][\w!#$&^.+-]{0,126}$/i
const BYTES = 'application/octet-stream'

/** Serves the original bytes of a message, and its attachments. */
export function messageContentRoutes(services: Services) {
  const { pool, blobs, answers } = services
  /**
   * Composes the bytes of an outbound mail before the first delivery attempt. The function stores the bytes, and each
   * delivery attempt then sends them. It does not store the bytes of a scheduled mail, because that mail is composed
   * with the settings that are valid at its sending time.
   */
  const composeNow = async (projectId: string, messageId: string) => {
    const mail = await findOutboundContent(pool, projectId, messageId)
    if (mail === null) return null
    const isFixed = !mail.isScheduled || mail.rawId !== null || mail.isRawExpired
    if (!isFixed) return await composeOutbound(services, mail)
    return (await composedMail(services, mail))?.bytes ?? null
  }
  return new Elysia()
    .get(
      '/v0/messages/:messageId/raw',
      async ({ request, params }) => {
        const { projectId } = projectOf(request)
        const { messageId } = params
        const size = await findRawSize(pool, projectId, messageId)
        if (size === null) throw notFound('Message not found')
        const body = await answers.body(partyOf(request)!, size, async () => {
          const raw = await findRaw(pool, blobs, projectId, messageId)
          if (raw === 'expired') throw originalGone()
          const bytes = raw === 'not composed' ? await composeNow(projectId, messageId) : raw
          if (bytes === null) throw notFound('Message not found')
          return bytes
        })
        return download(body, 'message/rfc822', 'message.eml')
      },
      {
        params: MessageParams,
        detail: operation({
          summary: 'Get the original of a message',
          description: 'The bytes as received (RFC 5322), or as sent.',
          tag: 'Messages',
          access: 'mail:read',
          success: {
            status: 200,
            description: 'The message.',
            contentType: 'message/rfc822',
            schema: t.String(),
            example: 'Subject: Offer\r\n\r\nShall I order?\r\n',
          },
          errors: {
            404: 'Message not found',
            410: 'The original is no longer kept; the message is',
          },
        }),
      },
    )
    .get(
      '/v0/messages/:messageId/attachments/:attachmentId',
      async ({ request, params }) => {
        const { projectId } = projectOf(request)
        const { size, stored, contentType, filename } = await attachmentOf(services, {
          projectId,
          ...params,
        })
        const read = () => blobs.of(projectId).read(stored)
        const body = await answers.body(partyOf(request)!, size, read)
        return download(body, MEDIA_TYPE.test(contentType) ? contentType : BYTES, filename)
      },
      {
        params: t.Composite([
          MessageParams,
          t.Object({ attachmentId: t.String({ minLength: 1, maxLength: 64 }) }),
        ]),
        detail: operation({
          summary: 'Get an attachment',
          description: 'The decoded bytes, with the media type and the file name of the sender.',
          tag: 'Messages',
          access: 'mail:read',
          success: {
            status: 200,
            description: 'The attachment.',
            contentType: BYTES,
            schema: t.String(),
            example: 'bytes',
          },
          errors: { 404: 'Attachment not found' },
        }),
      },
    )
}

/** Finds an attachment without reading its content. @throws {ApiError} 404 for an unknown attachment. */
async function attachmentOf(
  { pool }: Pick<Services, 'pool'>,
  wanted: { projectId: string; messageId: string; attachmentId: string },
) {
  const found = await findAttachment(pool, wanted)
  if (found === null) throw notFound('Message not found')
  if (found === 'no attachment') throw notFound('Attachment not found')
  return found
}

/**
 * Reads an attachment. @throws {ApiError} 404 for an unknown attachment. 413 for an attachment larger than `maxBytes`.
 */
export async function readAttachment(
  { pool, blobs }: Pick<Services, 'pool' | 'blobs'>,
  wanted: { projectId: string; messageId: string; attachmentId: string; maxBytes?: number },
): Promise<StoredAttachment> {
  const found = await attachmentOf({ pool }, wanted)
  const { maxBytes = Number.POSITIVE_INFINITY } = wanted
  const { size, stored, ...described } = found
  if (size <= maxBytes)
    return { ...described, bytes: await blobs.of(wanted.projectId).read(stored) }
  throw new ApiError(
    413,
    'payload_too_large',
    `The attachment has ${size} bytes; it must have at most ${maxBytes}`,
  )
}

/**
 * Returns a file as a download. The sender of the mail chose the bytes, the type and the name of the file. Therefore a
 * browser must save the file, and must neither run it nor guess its type.
 */
export function download(
  body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
  contentType: string,
  filename: string,
): Response {
  return new Response(body, {
    headers: {
      'content-type': contentType,
      'content-disposition': attachmentDisposition(filename),
      'content-security-policy': "default-src 'none'; sandbox",
    },
  })
}

/**
 * Returns the Content-Disposition header of a download (RFC 6266), with an ASCII name for old clients and with the full
 * name in UTF-8 (RFC 8187).
 */
function attachmentDisposition(filename: string): string {
  const plain = filename.replace(/[^\x20-\x7e]|["\\%/]/g, '_')
  const encoded = encodeURIComponent(filename.toWellFormed()).replace(
    /['()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}
