import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'
import { drafts } from './drafts.ts'

/** A message as lists show it. */
export type MessageItem = Operations['getMessages']['result']['messages'][number]
/** A whole message. */
export type Message = Operations['getMessagesByMessageId']['result']

type ListQuery = Omit<
  NonNullable<Operations['getMessages']['input']['query']>,
  'limit' | 'labels'
> & {
  /** 1–100; default 50. */
  limit?: number | undefined
  /** A message must have all of them. */
  labels?: readonly string[] | undefined
}

type WaitQuery = Omit<
  NonNullable<Operations['getMessagesWait']['input']['query']>,
  'timeout' | 'labels'
> & {
  timeout?: number | undefined
  labels?: readonly string[] | undefined
}

/** Longer than the maximum wait of the service (60 s). */
const WAIT_TIMEOUT_MS = 75_000

/**
 * The mail of an inbox. `q`, `from`, `to`, `subject`, `after` and `before` filter a list.
 *
 * @example
 * const { messageId } = await purser.messages.send({ to: ['ann@example.com'], subject: 'Hi', text: 'Hello' })
 * const code = await purser.messages.waitForCode({ from: 'no-reply@shop.example' })
 */
export function messages(http: Http) {
  /** One page, newest first. */
  const list = ({ labels, ...page }: ListQuery = {}, options?: CallOptions) =>
    http.call('getMessages', { query: { ...page, labels: labels?.join(',') } }, options)
  /**
   * Waits for the next matching received message; undefined after the timeout.
   * @param query `timeout` in seconds, at most 60; with `after`, earlier messages since that time count; with `has`, only
   * a message with a one-time code, an attachment whose text was read, or an invite.
   */
  const wait = ({ labels, ...query }: WaitQuery = {}, options?: CallOptions) =>
    http.call(
      'getMessagesWait',
      { query: { ...query, labels: labels?.join(',') } },
      { timeoutMs: WAIT_TIMEOUT_MS, ...options },
    ) as Promise<Message | undefined>
  return {
    list,
    /** Every message, newest first; iteration loads the pages. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.messages,
        query.pageToken,
      ),
    get: (messageId: string, options?: CallOptions) =>
      http.call('getMessagesByMessageId', { path: { messageId } }, options),
    wait,
    /**
     * Waits for a received message with a one-time code; undefined after the timeout. Anybody can mail a code: name
     * the sender in `from`.
     * @returns the most certain code, and the message with all `codes` and `links`.
     */
    waitForCode: async (query: Omit<WaitQuery, 'has'> = {}, options?: CallOptions) => {
      const message = await wait({ ...query, has: 'code' }, options)
      const code = message?.codes?.[0]?.value
      return message === undefined || code === undefined ? undefined : { code, message }
    },
    /** The original, as received or as sent. */
    raw: (messageId: string, options?: CallOptions) =>
      http.call('getMessagesByMessageIdRaw', { path: { messageId } }, options),
    /** The bytes of an attachment. */
    attachment: (messageId: string, attachmentId: string, options?: CallOptions) =>
      http.call(
        'getMessagesByMessageIdAttachmentsByAttachmentId',
        { path: { messageId, attachmentId } },
        options,
      ),
    /**
     * A page of the words of an attachment; a stranger wrote them. `state` is pending until it is read: wait with
     * `has: 'text'`, or follow the event attachment.read.
     * @param query `offset` and `limit` in characters.
     */
    attachmentText: (
      messageId: string,
      attachmentId: string,
      query: { offset?: number | undefined; limit?: number | undefined } = {},
      options?: CallOptions,
    ) =>
      http.call(
        'getMessagesByMessageIdAttachmentsByAttachmentIdText',
        { path: { messageId, attachmentId }, query },
        options,
      ),
    /** Mails that are being written. */
    drafts: drafts(http),
    /** Cancels a scheduled message, or withdraws a held one: it is never sent. */
    cancel: (messageId: string, options?: CallOptions) =>
      http.call('postMessagesByMessageIdCancel', { path: { messageId } }, options),
    /** Deletes a message permanently. A queued message is not sent. */
    delete: (messageId: string, options?: CallOptions) =>
      http.call('deleteMessagesByMessageId', { path: { messageId } }, options),
    /** Adding read removes unread; adding unread removes read. */
    updateLabels: (
      messageId: string,
      change: Operations['patchMessagesByMessageId']['input']['body'],
      options?: CallOptions,
    ) => http.call('patchMessagesByMessageId', { path: { messageId }, body: change }, options),
    /** Sends a mail in a new thread, with `sendAt` at that time. After a lost answer the client retries only with an idempotencyKey. */
    send: (mail: Operations['postMessagesSend']['input']['body'], options?: CallOptions) =>
      http.call('postMessagesSend', { body: mail }, options),
    /** Replies in the thread of a message. After a lost answer the client retries only with an idempotencyKey. */
    reply: (
      messageId: string,
      reply: Operations['postMessagesByMessageIdReply']['input']['body'],
      options?: CallOptions,
    ) => http.call('postMessagesByMessageIdReply', { path: { messageId }, body: reply }, options),
  }
}
