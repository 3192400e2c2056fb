import { everyPage } from './everyPage.ts'
import type { CallOptions, Http } from './http.ts'
import type { Operations } from './operations.ts'

/** A message as lists show it. */
export type MessageItem = Operations['getMessages']['result']['messages'][number]
/** A whole message. */
export type Message = Operations['getMessagesByMessageId']['result']

type ListQuery = Omit<
  NonNullable<Operations['getMessages']['input']['query']>,
  'limit' | 'labels'
> & {
  /** 1–100; 50 when left out. */
  limit?: number | undefined
  /** A message must carry all of them. */
  labels?: readonly string[] | undefined
}

type WaitQuery = Omit<
  NonNullable<Operations['getMessagesWait']['input']['query']>,
  'timeout' | 'labels'
> & {
  timeout?: number | undefined
  labels?: readonly string[] | undefined
}

/** Longer than the service waits. */
const WAIT_TIMEOUT_MS = 75_000

/** The mail of an inbox. In a list, `q`, `from`, `to`, `subject`, `after` and `before` search and narrow. */
export function messages(http: Http) {
  /** One page, newest first. */
  const list = ({ labels, ...page }: ListQuery = {}, options?: CallOptions) =>
    http.call('getMessages', { query: { ...page, labels: labels?.join(',') } }, options)
  return {
    list,
    /** Every message, newest first; reads on as it is iterated. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.messages,
        query.pageToken,
      ),
    get: (messageId: string, options?: CallOptions) =>
      http.call('getMessagesByMessageId', { path: { messageId } }, options),
    /**
     * The next received message that matches, as soon as it is there; undefined when none came in time.
     * @param query `timeout` in seconds, at most 60; with `after`, what is already there counts.
     */
    wait: ({ labels, ...query }: WaitQuery = {}, options?: CallOptions) =>
      http.call(
        'getMessagesWait',
        { query: { ...query, labels: labels?.join(',') } },
        { timeoutMs: WAIT_TIMEOUT_MS, ...options },
      ) as Promise<Message | undefined>,
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
    /** For good. One that is still queued is not sent. */
    delete: (messageId: string, options?: CallOptions) =>
      http.call('deleteMessagesByMessageId', { path: { messageId } }, options),
    /** Adding read removes unread, and the reverse. */
    updateLabels: (
      messageId: string,
      change: Operations['patchMessagesByMessageId']['input']['body'],
      options?: CallOptions,
    ) => http.call('patchMessagesByMessageId', { path: { messageId }, body: change }, options),
    /** Sends a mail, which starts a new thread. Tried again after a lost answer only with an idempotencyKey. */
    send: (mail: Operations['postMessagesSend']['input']['body'], options?: CallOptions) =>
      http.call('postMessagesSend', { body: mail }, options),
    /** Answers a message in its thread. Tried again after a lost answer only with an idempotencyKey. */
    reply: (
      messageId: string,
      reply: Operations['postMessagesByMessageIdReply']['input']['body'],
      options?: CallOptions,
    ) => http.call('postMessagesByMessageIdReply', { path: { messageId }, body: reply }, options),
  }
}
