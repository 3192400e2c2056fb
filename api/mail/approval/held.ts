import { type Static, Type as t } from '@sinclair/typebox'
import { findApproval, listApprovals } from '../../../sql/account/approvals.ts'
import type { Actor } from '../../../sql/account/audit.ts'
import { findProject } from '../../../sql/account/projects/projects.ts'
import type { Queryable } from '../../../sql/db.ts'
import { editHeld } from '../../../sql/mail/approval/editHeld.ts'
import { decideHeld, type HeldDecision } from '../../../sql/mail/approval/heldMails.ts'
import { heldBytes, readHeldMails } from '../../../sql/mail/approval/heldReads.ts'
import { findRawSize } from '../../../sql/mail/messages/attachments.ts'
import { findOutboundContent } from '../../../sql/mail/outbound/outboundMails.ts'
import { ApiError, badRequest, conflict, notFound, originalGone } from '../../http/errors.ts'
import { peopleOf } from '../../http/limits/loopTime.ts'
import { PageQuery } from '../../http/operation.ts'
import { cutPage, readPage } from '../../http/page.ts'
import type { Services } from '../../http/services.ts'
import {
  type EditBody,
  type HeldPage,
  type HeldRequest,
  State,
  toHeldItem,
  toHeldRequest,
} from './heldDocs.ts'
import { hashOfHeld, withHeldMail } from './heldMemory.ts'

export const HeldQuery = t.Composite([PageQuery, t.Object({ state: t.Optional(State) })])

/** Sets the maximum number of characters of each text in a list of mails that wait for approval. */
const EXCERPT_CHARS = 1_000
const WHOLE_CHARS = 2 ** 30

/**
 * Returns one page of the approval requests for mail in the given state, newest first. @throws {ApiError} 404 for an
 * unknown project.
 */
export async function readHeld(
  { pool }: Services,
  projectId: string,
  { state = 'waiting', ...query }: Static<typeof HeldQuery>,
): Promise<Static<typeof HeldPage>> {
  if ((await findProject(pool, projectId)) === null) throw notFound('Project not found')
  const { limit, cursor } = readPage(query)
  const found = await listApprovals(pool, {
    projectId,
    kind: 'mail',
    state,
    cursor,
    limit: limit + 1,
  })
  const { page, next } = cutPage(found, limit, ({ requestedAt }) => requestedAt)
  const ids = page.map(({ subject }) => subject)
  const mails = await readHeldMails(pool, projectId, ids, EXCERPT_CHARS)
  const held = page.map((one) => toHeldItem(one, mails.get(one.subject)))
  return { held, count: held.length, ...next }
}

/** Returns one approval request with its mail. @throws {ApiError} 404 for an unknown approval request. */
export async function readHeldRequest(
  services: Services,
  wanted: Wanted,
): Promise<Static<typeof HeldRequest>> {
  const approval = await requested(services, wanted)
  const about = { projectId: wanted.projectId, messageId: approval.subject }
  // Another owner may edit the held mail while the function reads it and the hash of its bytes. Therefore the function
  // reads the hash first. After such an edit, the response has the hash of the bytes before the edit, so the service
  // refuses an approval with this hash.
  const stored = await hashOfHeld(services, about)
  const mails = await readHeldMails(services.pool, about.projectId, [about.messageId], WHOLE_CHARS)
  const hash = stored ?? approval.contentHash
  return toHeldRequest(approval, mails.get(about.messageId), hash)
}

/**
 * Returns the bytes of an approval request's mail as the body of a response. @throws {ApiError} 404 for an unknown
 * approval request or mail, 410 if the bytes were removed after the project's retention time.
 */
export async function readHeldBytes(services: Services, wanted: Wanted) {
  const { subject: messageId } = await requested(services, wanted)
  const { projectId } = wanted
  const size = (await findRawSize(services.pool, projectId, messageId)) ?? 0
  return await services.answers.body(peopleOf(projectId), size, async () => {
    const composed = await heldBytes(services, { projectId, messageId })
    if (composed !== null) return composed.bytes
    const mail = await findOutboundContent(services.pool, projectId, messageId)
    if (mail === null) throw notFound('Message not found')
    throw originalGone()
  })
}

type Wanted = { projectId: string; approvalId: string }

async function requested({ pool }: Services, { projectId, approvalId }: Wanted) {
  const approval = await findApproval(pool, approvalId)
  if (approval?.kind !== 'mail' || approval.projectId !== projectId) {
    throw notFound('Request not found')
  }
  return approval
}

/**
 * Approves or rejects a mail that waits for the owner's approval. If the owner makes the same decision again, nothing
 * changes.
 * @throws {ApiError} 404 for an unknown approval request. 409 if the owner already made another decision, or if the
 * hash belongs to other bytes. 410 if the approval request has expired.
 */
export async function decide(
  services: Services,
  actor: Actor,
  {
    approvalId,
    decision,
    within,
  }: {
    approvalId: string
    decision: HeldDecision
    within?: (db: Queryable) => Promise<void>
  },
): Promise<Static<typeof HeldRequest>> {
  const end = await decideHeld(services.pool, actor, {
    id: approvalId,
    decision,
    ...(within === undefined ? {} : { within }),
  })
  if (end === null) throw notFound('Request not found')
  const { kind, approval } = end
  if (kind === 'changed') throw changedMeanwhile()
  if (kind === 'late' || approval.state === 'expired') throw late()
  const isSame =
    approval.state === decision.state &&
    (decision.state !== 'approved' || approval.contentHash?.equals(decision.hash) === true)
  if (kind === 'before' && !isSame) throw conflict(`The request is ${approval.state} already`)
  return await readHeldRequest(services, { projectId: actor.projectId, approvalId })
}

const late = () => new ApiError(410, 'expired', 'The request has expired')

const changedMeanwhile = () =>
  conflict('sha256 must be that of the present bytes: read the request again')

/**
 * Changes the content of a held mail (a mail that waits for the owner's approval). @throws {ApiError} 400 for an
 * invalid change, 404 for an unknown approval request, 409 if the mail has changed or no longer waits, 410 if the
 * approval request has expired.
 */
export async function edit(
  services: Services,
  actor: Actor,
  { approvalId, body }: { approvalId: string; body: Static<typeof EditBody> },
): Promise<Static<typeof HeldRequest>> {
  const { sha256, ...change } = body
  if (Object.keys(change).length === 0) {
    throw badRequest('subject, text or html must be there to be changed')
  }
  const wanted = { projectId: actor.projectId, approvalId }
  const { subject: messageId } = await requested(services, wanted)
  const end = await withHeldMail(services, { projectId: actor.projectId, messageId }, () =>
    editHeld(services, actor, {
      id: approvalId,
      seen: Buffer.from(sha256, 'hex'),
      edit: change,
    }),
  )
  if (end === null) throw notFound('Request not found')
  if (end === 'changed') throw changedMeanwhile()
  if (end === 'decided') {
    const { state, isLate } = await requested(services, wanted)
    if (state === 'expired' || (state === 'waiting' && isLate)) throw late()
    throw conflict('The request no longer waits')
  }
  return await readHeldRequest(services, wanted)
}
