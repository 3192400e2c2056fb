import { type Static, Type as t } from '@sinclair/typebox'
import { LABELS_MAX } from '../../../sql/mail/messages/messageLabels.ts'
import { readIdempotencyKey } from '../../http/input/idempotencyKey.ts'
import { readPage } from '../../http/page.ts'
import { Label, LabelChange } from '../../mail/messages/labels.ts'
import { changeLabels } from '../../mail/messages/messageChangeRoutes.ts'
import {
  RepliedMessage,
  SentMessage,
  SingleMessageSchema,
  WholeMessage,
} from '../../mail/messages/messageDocs.ts'
import {
  MessagePage,
  MessageParams,
  readMessage,
  readMessages,
} from '../../mail/messages/messageRoutes.ts'
import { ReplyBody, SendBody } from '../../mail/outbound/sendInput.ts'
import { replyTo, sendMessage } from '../../mail/outbound/sending.ts'
import { cut, messageLine, wholeMessage } from './mailText.ts'
import { defineTool, READS, STRICT, type Tool } from './tool.ts'
import { fence, UNTRUSTED, UntrustedMark } from './untrusted.ts'

/** Describes the paging arguments of every MCP tool that returns a list. */
export const PageInput = {
  limit: t.Optional(
    t.Integer({ minimum: 1, maximum: 100, default: 50, description: 'Maximum number of results.' }),
  ),
  pageToken: t.Optional(
    t.String({ maxLength: 64, description: 'nextPageToken of the previous answer, unchanged.' }),
  ),
}

/** Reads the paging arguments of an MCP tool. @throws {ApiError} 400 for an invalid page token. */
export const pageOf = ({ limit, pageToken }: { limit?: number; pageToken?: string }) =>
  readPage({
    ...(limit === undefined ? {} : { limit: String(limit) }),
    ...(pageToken === undefined ? {} : { pageToken }),
  })

/** Tells a language model how to get the next page of a list. The text is empty on the last page. */
export const moreText = ({ nextPageToken }: { nextPageToken?: string | undefined }): string =>
  nextPageToken === undefined ? '' : ` More: pass pageToken "${nextPageToken}".`

/**
 * Holds the MCP hints of the tools that send mail. They warn MCP hosts that nobody can recall a sent mail and that a
 * repeated call sends a second mail.
 */
export const SENDS = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: true,
} as const

/**
 * Sets the maximum number of characters of a mail's body in a list, because fifty whole mails would fill a language
 * model's context.
 */
const LIST_BODY_MAX_CHARS = 1_000

const ACCEPTED = {
  queued: 'Accepted for delivery',
  scheduled: 'Accepted for its time; mail.cancel stops it',
  held: 'Held until the owner approves it; do not send it again',
} as const

/** Returns the sentence of a tool result that tells that the service has accepted a mail or a reply. */
export const acceptedText = (sent: {
  messageId: string
  threadId: string
  deliveryStatus?: 'scheduled' | 'held'
}): string =>
  `${ACCEPTED[sent.deliveryStatus ?? 'queued']}: messageId ${sent.messageId}, thread ${sent.threadId}.`

/** Describes the argument that makes calls of mail.send and mail.reply safe to repeat. */
export const KeyInput = {
  idempotencyKey: t.Optional(
    t.String({
      maxLength: 255,
      description:
        'A name of your choice for this mail. For 24 hours a call with the same name and arguments sends no second mail and gets the first answer again.',
    }),
  ),
}

const WRONG_MESSAGE_ID =
  'Take messageId, angle brackets included, from mail.list_messages or mail.get_thread.'

type Page = Static<typeof MessagePage>

/** Returns a message for a list, with a shortened body. */
export const shortened = (message: Page['messages'][number]): Page['messages'][number] => ({
  ...message,
  text: cut(message.text, LIST_BODY_MAX_CHARS),
  ...(message.extractedText === undefined
    ? {}
    : { extractedText: cut(message.extractedText, LIST_BODY_MAX_CHARS) }),
})

const listMessages = defineTool({
  name: 'mail.list_messages',
  title: 'List mail',
  description: `Lists the mail of this inbox, received and sent, newest first. Use it to see new mail (labels ["unread"]) or to find a messageId. Answers messages (each text cut after ${LIST_BODY_MAX_CHARS} characters; mail.get_message has the full text), count, and nextPageToken if there are more. After handling a message, mark it with mail.update_labels. Example: {"labels":["unread"],"limit":10}`,
  scope: 'mail:read',
  input: t.Object(
    {
      labels: t.Optional(
        t.Array(Label, {
          maxItems: LABELS_MAX,
          description: 'A message must have all of these, such as received, sent, unread, read.',
        }),
      ),
      ...PageInput,
    },
    STRICT,
  ),
  output: t.Composite([MessagePage, UntrustedMark]),
  hints: READS,
  async run({ services, request, projectId }, input) {
    const wanted = {
      projectId,
      labels: [...new Set(input.labels)],
      queries: [],
      after: null,
      before: null,
      ...pageOf(input),
    }
    const page = await services.reads.run(request, (server) =>
      readMessages({ ...services, ...server }, wanted),
    )
    const head = `${page.count} messages, newest first.${moreText(page)}`
    return {
      data: { ...page, messages: page.messages.map(shortened), ...UNTRUSTED },
      text:
        page.count === 0 ? head : `${head}\n${fence(page.messages.map(messageLine).join('\n'))}`,
    }
  },
})

const getMessage = defineTool({
  name: 'mail.get_message',
  title: 'Read a message',
  description:
    'Reads one message whole: addresses, subject, text, extractedText (without quoted history), labels, attachments, for sent mail its deliveryStatus, invites (with their state), and for received mail codes (one-time codes) and links if the key has mail:codes. Use it before answering, and to see whether sent mail arrived. Reading does not mark it read. Example: {"messageId":"<4f2a@mail.example.com>"}',
  scope: 'mail:read',
  input: t.Object(MessageParams.properties, STRICT),
  output: t.Composite([SingleMessageSchema, UntrustedMark]),
  hints: READS,
  fixes: { not_found: WRONG_MESSAGE_ID },
  async run({ services, caller }, { messageId }) {
    const message = await readMessage(services, caller, messageId)
    return { data: { ...message, ...UNTRUSTED }, text: fence(wholeMessage(message)) }
  },
})

const send = defineTool({
  name: 'mail.send',
  title: 'Send mail',
  description:
    'Sends a new mail from this inbox and starts a new thread. To answer a mail use mail.reply instead: it keeps the thread. A mail cannot be recalled, and each call sends another mail. Never repeat a call that succeeded. Give an idempotencyKey if you may have to repeat the call. Answers messageId and threadId as soon as the mail is accepted; mail.get_message shows its deliveryStatus. With sendAt the mail waits for that time. deliveryStatus held means that the owner must approve it: do not send it again. With event it invites the recipients to an event, changes it or cancels it; its uid is in the answer. Example: {"to":["ada@example.com"],"subject":"Offer","text":"Shall I order?"}',
  scope: 'mail:send',
  input: t.Composite([SendBody, t.Object(KeyInput)], STRICT),
  output: SentMessage,
  hints: SENDS,
  async run({ services, caller, projectId, inboxAddress }, { idempotencyKey, ...input }) {
    const sent = await sendMessage(services, { projectId, inboxAddress }, input, {
      key: readIdempotencyKey(idempotencyKey),
      held: caller.holdsMail,
    })
    return { data: sent, text: acceptedText(sent) }
  },
})

const reply = defineTool({
  name: 'mail.reply',
  title: 'Answer a mail',
  description:
    'Replies to a message in its thread. The reply goes to its sender (Reply-To, else From), with replyAll also to the other recipients. The subject comes from the original. Each call sends another mail unless it repeats an idempotencyKey: never repeat a call that succeeded. Answers messageId, threadId and subject. Example: {"messageId":"<4f2a@mail.example.com>","text":"Yes, please."}',
  scope: 'mail:send',
  input: t.Composite([MessageParams, ReplyBody, t.Object(KeyInput)], STRICT),
  output: RepliedMessage,
  hints: SENDS,
  fixes: { not_found: WRONG_MESSAGE_ID },
  async run({ services, caller, projectId }, { idempotencyKey, ...input }) {
    const sent = await replyTo(services, projectId, input, {
      key: readIdempotencyKey(idempotencyKey),
      held: caller.holdsMail,
    })
    return { data: sent, text: acceptedText(sent) }
  },
})

const updateLabels = defineTool({
  name: 'mail.update_labels',
  title: 'Label a message',
  description:
    'Adds and removes labels of one message. Use it to mark handled mail as read (add read, remove unread), or to set labels of your own. addLabels or removeLabels must name at least one label. Answers the message with its new labels. Example: {"messageId":"<4f2a@mail.example.com>","addLabels":["read","invoice"],"removeLabels":["unread"]}',
  scope: 'mail:manage',
  input: t.Composite([MessageParams, LabelChange], STRICT),
  output: t.Composite([WholeMessage, UntrustedMark]),
  hints: {
    readOnlyHint: false,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  },
  fixes: { not_found: WRONG_MESSAGE_ID },
  async run({ services, projectId }, { messageId, ...change }) {
    const message = await changeLabels(services, projectId, messageId, change)
    return {
      data: { ...message, ...UNTRUSTED },
      text: `${message.messageId} now has the labels ${JSON.stringify(message.labels)}.`,
    }
  },
})

/** Lists the MCP tools for single messages. */
export const mailTools: readonly Tool[] = [listMessages, getMessage, send, reply, updateLabels]
