import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Cursor } from '../../../shared/cursor.ts'
import {
  changeDraft,
  createDraft,
  DRAFTS_MAX,
  DRAFTS_MAX_BYTES,
  type Draft,
  DraftsTooLargeError,
  deleteDraft,
  findDraft,
  findDraftSize,
  listDrafts,
  TooManyDraftsError,
} from '../../../sql/mail/approval/drafts.ts'
import { ApiError, badRequest, notFound } from '../../http/errors.ts'
import { MAIL_BODY_MAX_BYTES } from '../../http/input/body.ts'
import { operation, PageQuery } from '../../http/operation.ts'
import { cutPage, readPage } from '../../http/page.ts'
import { type Caller, callerOf, projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { RepliedMessage } from '../messages/messageDocs.ts'
import { findDraftAnswer, replyTo, type Sender, sendMessage } from '../outbound/sending.ts'
import { EXAMPLE_REPLIED, SEND_ERRORS } from '../outbound/sendingDocs.ts'
import {
  changed,
  checkDraft,
  contentOf,
  DraftBody,
  DraftChange,
  DraftItem,
  DraftParams,
  sendable,
  WholeDraft,
} from './draftInput.ts'

/** Describes one page of drafts. */
export const DraftPage = t.Object({
  drafts: t.Array(DraftItem),
  count: t.Integer(),
  nextPageToken: t.Optional(t.String()),
})

const EXAMPLE_ITEM = {
  draftId: 'dft_0a1b2c3d4e5f60718293a4b5',
  to: ['ada@example.com'],
  subject: 'Offer',
  createdAt: '2026-01-05T09:30:00.000Z',
  updatedAt: '2026-01-05T09:41:12.345Z',
}
const EXAMPLE = { ...EXAMPLE_ITEM, text: 'Shall I order?', attachments: [] }

const describe = { tag: 'Drafts' } as const
const large = { bodyMaxBytes: MAIL_BODY_MAX_BYTES, largeFor: 'attachments' } as const
const NOT_FOUND = { 404: 'Draft not found' }
const FULL = { 413: `The drafts of the project have ${DRAFTS_MAX_BYTES} bytes together` }
const whole = { description: 'The draft.', schema: WholeDraft, example: EXAMPLE }

/**
 * Serves drafts, which hold mail that is still being written. A draft is not a message, so lists, threads and searches
 * do not show drafts.
 */
export const draftRoutes = (services: Services) =>
  new Elysia({ prefix: '/v0/messages/drafts' })
    .post(
      '',
      async ({ request, body, set }) => {
        set.status = 201
        return await addDraft(services, projectOf(request).projectId, body)
      },
      {
        body: DraftBody,
        detail: operation({
          ...describe,
          ...large,
          summary: 'Create a draft',
          description: `The fields of send, or with inReplyTo those of reply. At most ${DRAFTS_MAX} drafts a project.`,
          access: 'mail:send',
          requestExample: { to: ['ada@example.com'], subject: 'Offer', text: 'Shall I order?' },
          success: { status: 201, ...whole },
          errors: FULL,
        }),
      },
    )
    .get(
      '',
      ({ request, query }) =>
        readDrafts(services, { projectId: projectOf(request).projectId, ...readPage(query) }),
      {
        query: PageQuery,
        detail: operation({
          ...describe,
          summary: 'List drafts, newest first',
          access: 'mail:read',
          success: {
            status: 200,
            description: 'One page of drafts, without their bodies and attachments.',
            schema: DraftPage,
            example: { drafts: [EXAMPLE_ITEM], count: 1 },
          },
        }),
      },
    )
    .get(
      '/:draftId',
      ({ request, params }) => readDraft(services, projectOf(request).projectId, params.draftId),
      {
        params: DraftParams,
        detail: operation({
          ...describe,
          summary: 'Get a draft',
          access: 'mail:read',
          success: { status: 200, ...whole },
          errors: NOT_FOUND,
        }),
      },
    )
    .patch(
      '/:draftId',
      ({ request, params, body }) =>
        editDraft(services, projectOf(request).projectId, { ...params, change: body }),
      {
        params: DraftParams,
        body: DraftChange,
        detail: operation({
          ...describe,
          ...large,
          summary: 'Change a draft',
          description: 'Given fields replace the present ones; others stay.',
          access: 'mail:send',
          requestExample: { text: 'Shall I order two?', remove: ['html'] },
          success: { status: 200, ...whole },
          errors: { ...NOT_FOUND, ...FULL },
        }),
      },
    )
    .delete(
      '/:draftId',
      async ({ request, params }) => {
        await removeDraft(services, projectOf(request).projectId, params.draftId)
        return new Response(null, { status: 204 })
      },
      {
        params: DraftParams,
        detail: operation({
          ...describe,
          summary: 'Delete a draft',
          access: 'mail:send',
          success: { status: 204, description: 'The draft is deleted.' },
          errors: NOT_FOUND,
        }),
      },
    )
    .post(
      '/:draftId/send',
      async ({ request, params, set }) => {
        const sent = await sendDraft(
          services,
          callerOf(request),
          projectOf(request),
          params.draftId,
        )
        set.status = 201
        return sent
      },
      {
        params: DraftParams,
        detail: operation({
          ...describe,
          summary: 'Send a draft',
          description:
            'Sends it by the rules of send or reply, and deletes it in the same transaction. A draft is sent once: for 24 hours a ' +
            'repeated call gets the first answer.',
          access: 'mail:send',
          success: {
            status: 201,
            description: 'The message was accepted.',
            schema: RepliedMessage,
            example: EXAMPLE_REPLIED,
          },
          errors: {
            ...SEND_ERRORS,
            404: 'Draft not found, or the message that it answers',
            409: 'The draft was changed meanwhile',
          },
        }),
      },
    )

/**
 * Creates a draft. @throws {ApiError} 400 for an invalid field or too many drafts, 413 if the project's drafts together
 * are too large.
 */
export async function addDraft(
  { pool }: Services,
  projectId: string,
  given: Static<typeof DraftBody>,
) {
  checkDraft(given)
  return toWhole(await bounded(() => createDraft(pool, projectId, split(given))))
}

/** Returns one page of drafts. */
export async function readDrafts(
  { pool }: Services,
  filter: { projectId: string; limit: number; cursor: Cursor | null },
) {
  const found = await listDrafts(pool, { ...filter, limit: filter.limit + 1 })
  const { page, next } = cutPage(found, filter.limit, ({ createdAt }) => createdAt)
  return { drafts: page.map(toItem), count: page.length, ...next }
}

/** Returns one draft. @throws {ApiError} 404 for an unknown draft. */
export async function readDraft(services: Services, projectId: string, draftId: string) {
  const draft = await holding(services, projectId, draftId, () =>
    findDraft(services.pool, projectId, draftId),
  )
  if (draft === null) throw noDraft()
  return toWhole(draft)
}

/**
 * Runs work that reads a whole draft with its attachments. During this work, the function counts the draft against the
 * memory limit.
 */
async function holding<Result>(
  { pool, answers }: Services,
  projectId: string,
  draftId: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const size = await findDraftSize(pool, projectId, draftId)
  return await answers.during(projectId, size, work)
}

/**
 * Changes a draft. @throws {ApiError} 400 for an invalid field, 404 for an unknown draft, 413 if the project's drafts
 * together are too large.
 */
export async function editDraft(
  services: Services,
  projectId: string,
  { draftId, change }: { draftId: string; change: Static<typeof DraftChange> },
) {
  const draft = await bounded(() =>
    holding(services, projectId, draftId, () =>
      changeDraft(services.pool, { projectId, id: draftId }, (present) => {
        const content = changed(contentOf(present), change)
        checkDraft(content, change)
        return split(content)
      }),
    ),
  )
  if (draft === null) throw noDraft()
  return toWhole(draft)
}

/** Deletes a draft. @throws {ApiError} 404 for an unknown draft. */
export async function removeDraft({ pool }: Services, projectId: string, draftId: string) {
  if (!(await deleteDraft(pool, projectId, draftId))) throw noDraft()
}

/**
 * Sends a draft once, even if the call is repeated. @throws {ApiError} 404 for an unknown draft, 409 for a conflict,
 * and the errors of send and reply.
 */
export const sendDraft = (
  services: Services,
  caller: Pick<Caller, 'holdsMail'>,
  sender: Sender,
  draftId: string,
) =>
  holding(services, sender.projectId, draftId, () =>
    sendHeldDraft(services, caller, sender, draftId),
  )

async function sendHeldDraft(
  services: Services,
  { holdsMail: held }: Pick<Caller, 'holdsMail'>,
  sender: Sender,
  draftId: string,
) {
  const { projectId } = sender
  const draft = await findDraft(services.pool, projectId, draftId)
  if (draft === null) {
    const sent = await findDraftAnswer(services, projectId, draftId)
    if (sent === null) throw noDraft()
    return sent
  }
  const wanted = sendable(contentOf(draft))
  const once = { key: null, held, draft: { id: draftId, version: draft.version } }
  return wanted.kind === 'send'
    ? await sendMessage(services, sender, wanted.body, once)
    : await replyTo(services, projectId, wanted.body, once)
}

const noDraft = () => notFound('Draft not found')

const split = ({ attachments = [], ...content }: Static<typeof DraftBody>) => ({
  content,
  attachments,
})

/** Turns the errors for exceeded limits on drafts into error responses. */
async function bounded<Result>(store: () => Promise<Result>): Promise<Result> {
  try {
    return await store()
  } catch (error) {
    if (error instanceof TooManyDraftsError) {
      throw badRequest(`A project must have at most ${DRAFTS_MAX} drafts`)
    }
    if (!(error instanceof DraftsTooLargeError)) throw error
    const message = `The drafts of a project must have at most ${DRAFTS_MAX_BYTES} bytes together`
    throw new ApiError(413, 'quota_exceeded', message)
  }
}

const toItem = (draft: Draft) => {
  const { attachments: _, ...content } = contentOf(draft)
  return {
    draftId: draft.id,
    ...content,
    createdAt: draft.createdAt.toISOString(),
    updatedAt: draft.updatedAt.toISOString(),
  }
}

const toWhole = (draft: Draft) => ({
  ...toItem(draft),
  attachments: (contentOf(draft).attachments ?? []).map((one) => ({
    filename: one.filename,
    contentType: one.contentType,
    size: Buffer.byteLength(one.content, 'base64'),
    contentId: one.contentId ?? null,
  })),
})
