import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'
import { drafts } from './drafts.ts'

/** Describes a message as it appears in a list. */
export type MessageItem = Operations['getMessages']['result']['messages'][number]
/** Describes a message with all its fields. */
export type Message = Operations['getMessagesByMessageId']['result']

type ListQuery = Omit<
  NonNullable<Operations['getMessages']['input']['query']>,
  'limit' | 'labels'
> & {
  /** Sets the number of messages in a page, from 1 to 100, and 50 by default. */
  limit?: number | undefined
  /**
   * Lists the labels that a message must have. The list of messages contains only messages that have all these labels.
   */
  labels?: readonly string[] | undefined
}

type WaitQuery = Omit<
  NonNullable<Operations['getMessagesWait']['input']['query']>,
  'timeout' | 'labels'
> & {
  timeout?: number | undefined
  labels?: readonly string[] | undefined
}

/**
 * Sets the client's time limit for a waiting call, in milliseconds. The limit exceeds the maximum wait of the service
 * (60 s), so that the response can still arrive.
 */
const WAIT_TIMEOUT_MS = 75_000
/**
 * Holds the number of seconds that the service waits if the query has no `timeout`. The service itself uses the same
 * default.
 */
const WAIT_DEFAULT_S = 30

/**
 * Reads and sends the mail of an inbox. The query fields `q`, `from`, `to`, `subject`, `after` and `before` filter a
 * list of messages.
 *
 * @example
 * const { messageId } = await purser.messages.send({ to: ['ann@example.com'], subject: 'Hi', text: 'Hello' })
 * const code = await purser.messages.waitForCode({ from: 'no-reply@shop.example' })
 */
export function messages(http: Http) {
  /** Holds the time of the newest message that a wait has returned, in milliseconds of the service's clock. */
  let lastMs = 0
  /** Returns one page of messages, newest first. */
  const list = ({ labels, ...page }: ListQuery = {}, options?: CallOptions) =>
    http.call('getMessages', { query: { ...page, labels: labels?.join(',') } }, options)
  /**
   * Waits for the next received message that matches the query. Returns `undefined` if no such message arrives before
   * the timeout.
   * @param query filters the messages. The query's `timeout` is in seconds, at most 60. With a time `after`, a message
   * that was received since that time also ends the wait. The query field `has` names a part that the message must
   * have: a one-time code, an attachment whose text was read, or an invite.
   */
  const wait = async ({ labels, ...given }: WaitQuery = {}, options?: CallOptions) => {
    const query = { ...given, labels: labels?.join(',') }
    const startMs = Date.now()
    const knownMs = lastMs
    /**
     * Makes the query of a retry. Its time `after` begins so early that the retry also finds a message that arrived
     * while the connection was lost. It begins after the last message that an earlier wait has returned, so that a
     * later wait does not return it again. A message that a concurrent wait returns does not count, because the
     * repeated query may look for an earlier message.
     */
    const ofRepeat = () => {
      const sinceMs = Math.max(startMs - (http.clockAheadMs ?? 0), knownMs)
      const after = http.clockAheadMs === null ? undefined : new Date(sinceMs).toISOString()
      const leftS = (query.timeout ?? WAIT_DEFAULT_S) - (Date.now() - startMs) / 1_000
      return {
        query: { ...query, after: query.after ?? after, timeout: Math.max(0, Math.ceil(leftS)) },
      }
    }
    const message = (await http.call(
      'getMessagesWait',
      { query },
      { timeoutMs: WAIT_TIMEOUT_MS, ...options },
      ofRepeat,
    )) as Message | undefined
    // A later call that waits for a message may use the time of this message as `after`, because the service then
    // leaves out messages of exactly this millisecond.
    if (message !== undefined) lastMs = Math.max(lastMs, Date.parse(message.createdAt))
    return message
  }
  return {
    list,
    /** Iterates over every message, newest first. The iteration loads the pages of messages one after another. */
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
     * Waits for a received message with a one-time code. Returns `undefined` if no such message arrives before the
     * timeout. Anybody can mail a one-time code, so name the expected sender in `from`.
     * @returns the most certain one-time code, and the message with all its `codes` and `links`.
     */
    waitForCode: async (query: Omit<WaitQuery, 'has'> = {}, options?: CallOptions) => {
      const message = await wait({ ...query, has: 'code' }, options)
      const code = message?.codes?.[0]?.value
      return message === undefined || code === undefined ? undefined : { code, message }
    },
    /** Returns the original bytes of a message, exactly as the service received or sent the message. */
    raw: (messageId: string, options?: CallOptions) =>
      http.call('getMessagesByMessageIdRaw', { path: { messageId } }, options),
    /** Returns the bytes of an attachment. */
    attachment: (messageId: string, attachmentId: string, options?: CallOptions) =>
      http.call(
        'getMessagesByMessageIdAttachmentsByAttachmentId',
        { path: { messageId, attachmentId } },
        options,
      ),
    /**
     * Returns a page of the text of an attachment. Do not trust this text, because the sender of the mail chose it. The
     * field `state` is pending until the service has read the attachment. To wait for the text, use `has: 'text'`, or
     * follow the event attachment.read.
     * @param query selects the page of the attachment's text. The query fields `offset` and `limit` count characters of
     * the text.
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
    /** Manages drafts, which are mails that are still being written. */
    drafts: drafts(http),
    /** Cancels a scheduled message, or withdraws a message that waits for approval. The service then never sends it. */
    cancel: (messageId: string, options?: CallOptions) =>
      http.call('postMessagesByMessageIdCancel', { path: { messageId } }, options),
    /** Deletes a message permanently. The service does not send a queued message after its deletion. */
    delete: (messageId: string, options?: CallOptions) =>
      http.call('deleteMessagesByMessageId', { path: { messageId } }, options),
    /**
     * Changes the labels of a message. Adding the label `read` removes the label `unread`, and adding `unread` removes
     * `read`.
     */
    updateLabels: (
      messageId: string,
      change: Operations['patchMessagesByMessageId']['input']['body'],
      options?: CallOptions,
    ) => http.call('patchMessagesByMessageId', { path: { messageId }, body: change }, options),
    /**
     * Sends a mail in a new thread. With `sendAt`, the service sends the mail at this time. If the service's response
     * is lost, the client sends the mail again only if the call has an `idempotencyKey`.
     */
    send: (mail: Operations['postMessagesSend']['input']['body'], options?: CallOptions) =>
      http.call('postMessagesSend', { body: mail }, options),
    /**
     * Replies in the thread of a message. If the service's response is lost, the client sends the reply again only if
     * the call has an `idempotencyKey`.
     */
    reply: (
      messageId: string,
      reply: Operations['postMessagesByMessageIdReply']['input']['body'],
      options?: CallOptions,
    ) => http.call('postMessagesByMessageIdReply', { path: { messageId }, body: reply }, options),
  }
}
