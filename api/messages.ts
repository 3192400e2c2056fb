import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { type Cursor, encodeCursor } from '../shared/cursor.ts'
import type { Pool } from '../sql/db.ts'
import {
  findMessage,
  LABELS_MAX,
  listMessages,
  TooManyLabelsError,
  updateLabels,
} from '../sql/messages.ts'
import { projectOf, type Services } from './context.ts'
import { badRequest, notFound } from './errors.ts'
import { MessageItem, toItem, toWhole, WholeMessage } from './messageView.ts'
import { operation, PageQuery } from './operation.ts'
import { readPage } from './page.ts'

const LABEL_MAX_LENGTH = 64
export const Label = t.String({ minLength: 1, maxLength: LABEL_MAX_LENGTH })

/** The longest Message-ID is a line of 998 characters; its alternative (contract §4) has a number more. */
export const MessageParams = t.Object({ messageId: t.String({ minLength: 1, maxLength: 1_100 }) })

const ListQuery = t.Composite([
  PageQuery,
  t.Object({
    labels: t.Optional(
      t.String({
        maxLength: 4_000,
        description: 'Comma-separated labels; a message must carry all of them.',
        examples: ['received,unread'],
      }),
    ),
  }),
])

export const LabelChange = t.Object({
  addLabels: t.Optional(t.Array(Label, { maxItems: LABELS_MAX })),
  removeLabels: t.Optional(t.Array(Label, { maxItems: LABELS_MAX })),
})

/** One page of messages. */
export const MessagePage = t.Object({
  messages: t.Array(MessageItem),
  count: t.Integer(),
  nextPageToken: t.Optional(t.String()),
})

const EXAMPLE_ITEM = {
  messageId: '<CAF+x=1@mail.example.com>',
  threadId: 'thd_0a1b2c3d4e5f60718293a4b5',
  from: ['ada@example.com'],
  to: ['agent@mail.example.com'],
  subject: 'Re: Offer',
  text: 'Yes, please.\n\nOn Mon, Jan 5, 2026 at 9:30 AM Agent wrote:\n> Shall I order?',
  extractedText: 'Yes, please.',
  labels: ['received', 'unread'],
  createdAt: '2026-01-05T09:41:12.345Z',
}

/** An example of a whole message, for the documentation. */
export const EXAMPLE_MESSAGE = {
  ...EXAMPLE_ITEM,
  inboxId: 'agent@mail.example.com',
  cc: [],
  attachments: [],
}

/** List, read and label the messages of an inbox. */
export function messageRoutes({ pool }: Services) {
  return new Elysia()
    .get(
      '/v0/messages',
      ({ request, query }) =>
        readMessages(pool, {
          projectId: projectOf(request).projectId,
          labels: readLabels(query.labels),
          ...readPage(query),
        }),
      {
        query: ListQuery,
        detail: operation({
          summary: 'List messages, newest first',
          description:
            'A page can be shorter than limit although there are more: one page carries at most 8 MB of text. ' +
            'nextPageToken alone says whether there is more.',
          tag: 'Messages',
          access: 'mail:read',
          success: {
            status: 200,
            description: 'One page of messages.',
            schema: MessagePage,
            example: { messages: [EXAMPLE_ITEM], count: 1 },
          },
        }),
      },
    )
    .get(
      '/v0/messages/:messageId',
      ({ request, params }) => readMessage(pool, projectOf(request).projectId, params.messageId),
      {
        params: MessageParams,
        detail: operation({
          summary: 'Get a message',
          tag: 'Messages',
          access: 'mail:read',
          success: {
            status: 200,
            description: 'The message.',
            schema: WholeMessage,
            example: EXAMPLE_MESSAGE,
          },
          errors: { 404: 'Message not found' },
        }),
      },
    )
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
}

/** One page of an inbox, newest first. */
export async function readMessages(
  pool: Pool,
  filter: { projectId: string; labels: readonly string[]; limit: number; cursor: Cursor | null },
): Promise<Static<typeof MessagePage>> {
  const { messages, more } = await listMessages(pool, filter)
  const last = messages.at(-1)
  const items = messages.map(toItem)
  if (!more || last === undefined) return { messages: items, count: items.length }
  const nextPageToken = encodeCursor({ atMs: last.createdAt.getTime(), row: last.row })
  return { messages: items, count: items.length, nextPageToken }
}

/** One message. @throws {ApiError} 404 */
export async function readMessage(pool: Pool, projectId: string, messageId: string) {
  const message = await findMessage(pool, projectId, messageId)
  if (message === null) throw notFound('Message not found')
  return toWhole(message)
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
    if (!(error instanceof TooManyLabelsError)) throw error
    throw badRequest(`addLabels must leave at most ${LABELS_MAX} labels on the message`)
  }
}

function readLabels(query: string | undefined): string[] {
  if (query === undefined || query === '') return []
  const labels = [...new Set(query.split(',').map((label) => label.trim()))]
  if (
    labels.length > LABELS_MAX ||
    labels.some((label) => label === '' || label.length > LABEL_MAX_LENGTH)
  ) {
    throw badRequest(
      `labels must be at most ${LABELS_MAX} labels of 1 to ${LABEL_MAX_LENGTH} characters, separated by commas`,
    )
  }
  return labels
}

/** The two marks that exclude each other. */
const OPPOSITE: Record<string, string> = { read: 'unread', unread: 'read' }

function readLabelChange(body: { addLabels?: string[]; removeLabels?: string[] }) {
  const add = [...new Set(body.addLabels ?? [])]
  const remove = new Set(body.removeLabels ?? [])
  if (add.length === 0 && remove.size === 0) {
    throw badRequest('addLabels or removeLabels must name at least one label')
  }
  if (add.includes('read') && add.includes('unread')) {
    throw badRequest('addLabels must not name both read and unread')
  }
  for (const label of add) if (OPPOSITE[label] !== undefined) remove.add(OPPOSITE[label])
  return { add, remove: [...remove] }
}
