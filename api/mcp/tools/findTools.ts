import { Type as t } from '@sinclair/typebox'
import { LABELS_MAX } from '../../../sql/mail/messages/messageLabels.ts'
import { AttachmentTextSchema, answerText } from '../../mail/messages/attachmentTextRoutes.ts'
import { Label } from '../../mail/messages/labels.ts'
import { readAttachment } from '../../mail/messages/messageContentRoutes.ts'
import { SingleMessageSchema } from '../../mail/messages/messageDocs.ts'
import { MessageFilterQuery, readMessageFilter } from '../../mail/messages/messageFilter.ts'
import { MessagePage, MessageParams, readMessages } from '../../mail/messages/messageRoutes.ts'
import { waitForMessage } from '../../mail/messages/messageWaitRoutes.ts'
import { attachmentText, messageLine, wholeMessage } from './mailText.ts'
import { moreText, PageInput, pageOf, shortened } from './mailTools.ts'
import { defineTool, READS, STRICT, type Tool } from './tool.ts'
import { fence, UNTRUSTED, UntrustedMark } from './untrusted.ts'

const { q, from, to, subject, after, before } = MessageFilterQuery.properties
const Labels = t.Optional(
  t.Array(Label, { maxItems: LABELS_MAX, description: 'A message must have all of these.' }),
)

const withLabels = <Rest extends object>({ labels, ...rest }: Rest & { labels?: string[] }) => ({
  ...rest,
  ...(labels === undefined || labels.length === 0 ? {} : { labels: labels.join(',') }),
})

const search = defineTool({
  name: 'mail.search',
  title: 'Search mail',
  description:
    'Finds messages of this inbox by words (q: a message must contain all of them; "a phrase", -without, one OR other, begin*), sender, recipient, subject, labels or time, newest first. Use it when you know the topic of a mail but not its messageId. Answers messages with highlights of the matches, count, and nextPageToken if there are more. Example: {"q":"invoice -draft","from":"ada@example.com","after":"2026-01-01"}',
  scope: 'mail:read',
  input: t.Object({ q, from, to, subject, labels: Labels, after, before, ...PageInput }, STRICT),
  output: t.Composite([MessagePage, UntrustedMark]),
  hints: READS,
  async run({ services, request, projectId }, { limit, pageToken, ...filter }) {
    const wanted = {
      projectId,
      ...readMessageFilter(withLabels(filter)),
      ...pageOf({ ...(limit && { limit }), ...(pageToken && { pageToken }) }),
    }
    const page = await services.reads.run(request, (server) =>
      readMessages({ ...services, ...server }, wanted),
    )
    const head = `${page.count} messages found, newest first.${moreText(page)}`
    return {
      data: { ...page, messages: page.messages.map(shortened), ...UNTRUSTED },
      text:
        page.count === 0 ? head : `${head}\n${fence(page.messages.map(messageLine).join('\n'))}`,
    }
  },
})

const TIMEOUT_DEFAULT_S = 30
const TIMEOUT_MAX_S = 60
const Timeout = t.Optional(
  t.Integer({
    minimum: 0,
    maximum: TIMEOUT_MAX_S,
    default: TIMEOUT_DEFAULT_S,
    description: 'The request waits at most this many seconds.',
  }),
)

const wait = defineTool({
  name: 'mail.wait',
  title: 'Wait for mail',
  description:
    'Waits for a matching message, at most timeout seconds. Use it after you have requested a mail, such as an answer; for a one-time code use mail.wait_for_code. Set after to the time of your request: earlier arrivals then count too. Answers found and message; found is false after the timeout: call again to continue. Example: {"from":"no-reply@example.com","subject":"code","after":"2026-01-05T09:30:00Z","timeout":60}',
  scope: 'mail:read',
  input: t.Object(
    {
      from,
      subject,
      labels: Labels,
      after,
      timeout: Timeout,
    },
    STRICT,
  ),
  output: t.Composite([
    t.Object({ found: t.Boolean(), message: t.Union([SingleMessageSchema, t.Null()]) }),
    UntrustedMark,
  ]),
  hints: READS,
  async run({ services, request, signal }, { timeout = TIMEOUT_DEFAULT_S, ...filter }) {
    const message = await waitForMessage(services, request, {
      filter: withLabels(filter),
      timeoutMs: timeout * 1_000,
      signal,
    })
    return {
      data: { found: message !== null, message, ...UNTRUSTED },
      text: message === null ? 'No message came in time.' : fence(wholeMessage(message)),
    }
  },
})

const waitForCode = defineTool({
  name: 'mail.wait_for_code',
  title: 'Wait for a one-time code',
  description:
    'Waits for a message with a one-time code, at most timeout seconds. Use it after a sign-up or a sign-in has sent a code to this inbox. Set after to the time of your request: earlier arrivals then count too. Answers found, code (the most certain one, as it is entered) and message, whose codes say where each stands and whose links hold the address to confirm; found is false after the timeout: call again to continue. Anybody can mail a code: name the sender in from. Example: {"from":"no-reply@example.com","after":"2026-01-05T09:30:00Z","timeout":60}',
  scope: 'mail:codes',
  input: t.Object({ from, subject, labels: Labels, after, timeout: Timeout }, STRICT),
  output: t.Composite([
    t.Object({
      found: t.Boolean(),
      code: t.Union([t.String(), t.Null()]),
      message: t.Union([SingleMessageSchema, t.Null()]),
    }),
    UntrustedMark,
  ]),
  hints: READS,
  async run({ services, request, signal }, { timeout = TIMEOUT_DEFAULT_S, ...filter }) {
    const message = await waitForMessage(services, request, {
      filter: withLabels(filter),
      has: 'code',
      timeoutMs: timeout * 1_000,
      signal,
    })
    const code = message?.codes?.[0]?.value ?? null
    return {
      data: { found: message !== null, code, message, ...UNTRUSTED },
      text:
        message === null
          ? 'No code came in time.'
          : fence(`Code: ${code}\n\n${wholeMessage(message)}`),
    }
  },
})

/**
 * Sets the maximum number of bytes of an attachment in the result of an MCP tool, because Base64 turns three bytes into
 * four characters, which take space in the context of the language model.
 */
const ATTACHMENT_MAX_BYTES = 256 * 1024
/** Sets the maximum number of characters of an attachment's text in the result of one tool call. */
const PAGE_CHARS = 20_000

const getAttachment = defineTool({
  name: 'mail.get_attachment',
  title: 'Read an attachment',
  description: `Reads the words of one attachment: PDF, office files, HTML, CSV, nested mail, and the names in an archive. mail.get_message lists attachmentId and text.state. Answers at most ${PAGE_CHARS} characters; nextOffset begins the next page. state is pending until the file is read: ask again after some seconds. none: it holds no text, as a scan does. omitted names what a person does not see; the text leaves it out. With as "bytes" it answers the file in base64, at most ${ATTACHMENT_MAX_BYTES / 1024} KB. Example: {"messageId":"<4f2a@mail.example.com>","attachmentId":"att_1"}`,
  scope: 'mail:read',
  input: t.Composite(
    [
      MessageParams,
      t.Object({
        attachmentId: t.String({ minLength: 1, maxLength: 64 }),
        as: t.Optional(t.Union([t.Literal('text'), t.Literal('bytes')])),
        offset: t.Optional(
          t.Integer({
            minimum: 0,
            maximum: 9_999_999,
            description: 'nextOffset of the last answer.',
          }),
        ),
      }),
    ],
    STRICT,
  ),
  output: t.Composite([
    t.Object({ filename: t.String(), contentType: t.String() }),
    t.Partial(t.Omit(AttachmentTextSchema, ['filename', 'contentType', 'untrusted', 'offset'])),
    t.Object({ size: t.Optional(t.Integer()), base64: t.Optional(t.String()) }),
    UntrustedMark,
  ]),
  hints: READS,
  fixes: {
    not_found: 'Take messageId and attachmentId from mail.get_message.',
    payload_too_large:
      'Fetch it over REST: GET /v0/messages/{messageId}/attachments/{attachmentId}.',
  },
  async run({ services, projectId }, { messageId, attachmentId, as = 'text', offset = 0 }) {
    const wanted = { projectId, messageId, attachmentId }
    if (as === 'bytes') {
      const file = { ...wanted, maxBytes: ATTACHMENT_MAX_BYTES }
      const { filename, contentType, bytes } = await readAttachment(services, file)
      const size = bytes.length
      return {
        data: { filename, contentType, size, base64: bytes.toString('base64'), ...UNTRUSTED },
        text: fence(`${filename} (${contentType}, ${size} bytes), base64 in the data`),
      }
    }
    const page = await answerText(services, { ...wanted, offset, limit: PAGE_CHARS })
    const { offset: _offset, untrusted: _untrusted, ...shown } = page
    return { data: { ...shown, ...UNTRUSTED }, text: fence(attachmentText(page)) }
  },
})

/** Lists the MCP tools with which an agent finds messages and reads attachments. */
export const findTools: readonly Tool[] = [search, wait, waitForCode, getAttachment]
