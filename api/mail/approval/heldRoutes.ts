import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Actor } from '../../../sql/account/audit.ts'
import type { Trust } from '../../../sql/mail/approval/heldMails.ts'
import { stillAdmitted } from '../../account/platformActor.ts'
import { MAIL_BODY_MAX_BYTES } from '../../http/input/body.ts'
import { operation } from '../../http/operation.ts'
import { identityOf, stateOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { download } from '../messages/messageContentRoutes.ts'
import { decide, edit, HeldQuery, readHeld, readHeldBytes, readHeldRequest } from './held.ts'
import {
  ApproveBody,
  EditBody,
  EXAMPLE_HELD,
  EXAMPLE_HELD_ITEM,
  EXAMPLE_SHA256,
  HeldPage,
  HeldRequest,
  RejectBody,
} from './heldDocs.ts'
import { requireSeen } from './heldReview.ts'

const Project = t.Object({ projectId: t.String({ minLength: 1, maxLength: 100 }) })
const Params = t.Composite([
  Project,
  t.Object({ approvalId: t.String({ minLength: 1, maxLength: 64 }) }),
])

const describe = { tag: 'Platform', access: 'platform:manage' } as const
const whole = { description: 'The request.', schema: HeldRequest, example: EXAMPLE_HELD }
const ERRORS = {
  404: 'Request not found',
  409: 'The request is decided otherwise, or the bytes are others than those of sha256',
  410: 'The request has expired',
}

const actorOf = (request: Request, projectId: string): Actor => ({
  projectId,
  keyPrefix: identityOf(request).keyPrefix,
  requestId: stateOf(request).requestId,
})

type Approval = Static<typeof Params> & Static<typeof ApproveBody>

/**
 * Approves a held mail (a mail that waits for the owner's approval). A caller with a platform key can read the bytes of
 * the mail anyway, and need not prove that it saw them. An operator at the console must prove that the console showed
 * all pages.
 */
async function approve(
  services: Services,
  request: Request,
  { projectId, approvalId, sha256, trust = 'recipients', seen }: Approval,
) {
  const actor = actorOf(request, projectId)
  if (isAtConsole(actor.keyPrefix)) requireSeen(services, { approvalId, sha256, seen })
  const hash = Buffer.from(sha256, 'hex')
  return await decide(services, actor, {
    approvalId,
    decision: { state: 'approved', hash, trust: trust as Trust },
    within: stillAdmitted(request),
  })
}

/**
 * Tells whether the actor in the audit log is a console session (api/console/access.ts), whose name begins with
 * `console:`. The prefix of an API key never contains a colon.
 */
const isAtConsole = (actor: string): boolean => actor.startsWith('console:')

/** Serves the mail of projects that waits for the owner's approval. */
export const heldRoutes = (services: Services) =>
  new Elysia({ prefix: '/v0/platform/projects/:projectId/held' })
    .get('', ({ params, query }) => readHeld(services, params.projectId, query), {
      params: Project,
      query: HeldQuery,
      detail: operation({
        ...describe,
        summary: 'List mail that waits for approval, newest first',
        description:
          'With state also decided requests, for 90 days. Texts are cut after 1,000 characters.',
        success: {
          status: 200,
          description: 'One page of requests.',
          schema: HeldPage,
          example: { held: [EXAMPLE_HELD_ITEM], count: 1 },
        },
        errors: { 404: 'Project not found' },
      }),
    })
    .get('/:approvalId', ({ params }) => readHeldRequest(services, params), {
      params: Params,
      detail: operation({
        ...describe,
        summary: 'Get a held mail with the hash of its bytes',
        success: { status: 200, ...whole },
        errors: { 404: 'Request not found' },
      }),
    })
    .get(
      '/:approvalId/raw',
      async ({ params }) =>
        download(await readHeldBytes(services, params), 'message/rfc822', 'message.eml'),
      {
        params: Params,
        detail: operation({
          ...describe,
          summary: 'Get the bytes of a held mail',
          success: {
            status: 200,
            description: 'The mail as it would be sent.',
            contentType: 'message/rfc822',
            schema: t.String(),
            example: 'Subject: Offer\r\n\r\nShall I order?\r\n',
          },
          errors: { 404: 'Request not found', 410: 'The bytes are no longer kept' },
        }),
      },
    )
    .patch(
      '/:approvalId',
      ({ request, params, body }) =>
        edit(services, actorOf(request, params.projectId), { ...params, body }),
      {
        params: Params,
        body: EditBody,
        detail: operation({
          ...describe,
          bodyMaxBytes: MAIL_BODY_MAX_BYTES,
          summary: 'Edit a held mail',
          description:
            'Its Message-ID and Date stay, its hash changes. A new text without html drops the HTML. It still waits.',
          requestExample: { sha256: EXAMPLE_SHA256, text: 'Shall I order two?' },
          success: { status: 200, ...whole },
          errors: ERRORS,
        }),
      },
    )
    .post(
      '/:approvalId/approve',
      ({ request, params, body }) => approve(services, request, { ...params, ...body }),
      {
        params: Params,
        body: ApproveBody,
        detail: operation({
          ...describe,
          summary: 'Approve a held mail',
          description:
            'Exactly the bytes with this hash are sent, once. With sendAt they wait for that time. Approving twice changes nothing.',
          requestExample: { sha256: EXAMPLE_SHA256 },
          success: { status: 200, ...whole },
          errors: ERRORS,
        }),
      },
    )
    .post(
      '/:approvalId/reject',
      ({ request, params, body: { reason } }) =>
        decide(services, actorOf(request, params.projectId), {
          ...params,
          decision: { state: 'rejected', reason: reason?.trim() || null },
          within: stillAdmitted(request),
        }),
      {
        params: Params,
        body: RejectBody,
        detail: operation({
          ...describe,
          summary: 'Reject a held mail',
          description:
            'It is never sent. The agent gets the event message.rejected and reads the reason.',
          requestExample: { reason: 'The price is wrong.' },
          success: { status: 200, ...whole },
          errors: ERRORS,
        }),
      },
    )
