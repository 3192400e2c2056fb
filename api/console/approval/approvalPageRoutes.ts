/**
 * Serves the approval page that the link in a notification mail opens. GET shows the held mail and changes nothing,
 * because mail scanners open every link of a mail. The owner decides with the form of the page, which sends a POST
 * request.
 */
import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { APPROVAL_TOKEN } from '../../../shared/approvalLink.ts'
import { networkSubject } from '../../../shared/http/networkSubject.ts'
import {
  findApprovalLink,
  LinkOverError,
  useApprovalLink,
} from '../../../sql/account/approvalLinks.ts'
import { type ApprovalKind, findApproval } from '../../../sql/account/approvals.ts'
import type { Actor } from '../../../sql/account/audit.ts'
import { ApiError } from '../../http/errors.ts'
import { countFailedSignIn } from '../../http/gate.ts'
import { personPage, sayingHtml } from '../../http/personPage.ts'
import { stateOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { decide, readHeldRequest } from '../../mail/approval/held.ts'
import { REASON_MAX_LENGTH } from '../../mail/approval/heldDocs.ts'
import { ReviewQuery, readReviewPage, requireSeen, UNREAD } from '../../mail/approval/heldReview.ts'
import { decideAsked, readAskedPayment } from '../../purse/askedRoutes.ts'
import { openOperation } from '../consoleOperation.ts'
import { approvalHtml, paymentHtml } from './approvalHtml.ts'
import { framedMail } from './framedMail.ts'

const Params = t.Object({ token: t.String({ maxLength: 100 }) })
const Form = t.Object({
  decision: t.Union([t.Literal('approve'), t.Literal('reject')]),
  sha256: t.String({ pattern: '^[0-9a-f]{64}$', error: 'be 64 hexadecimal digits' }),
  seen: t.Optional(t.String({ maxLength: 100 })),
  trust: t.Optional(t.Literal('recipients')),
  // The form accepts twice the maximum length of a reason, because a browser counts a line end of a text field as one
  // character, but sends two (HTML standard, §4.10.22.7).
  reason: t.Optional(t.String({ maxLength: 2 * REASON_MAX_LENGTH })),
})
const Query = t.Composite([ReviewQuery, t.Object({ view: t.Optional(t.Literal('html')) })])

/**
 * Returns the reason that a person typed into a form, with one character for each line end, as the browser counted.
 * Null means that the form has no reason.
 */
const reasonOf = ({ reason = '' }: Static<typeof Form>): string | null =>
  reason.replaceAll('\r\n', '\n').slice(0, REASON_MAX_LENGTH).trim() || null

const CHANGED = 'The mail has changed since. Read it again.'

const GONE = 'This link is not valid. It may be mistyped, or its request is deleted.'
const gone = () => personPage(sayingHtml('Nothing here', GONE), 404)

/** Serves the approval pages that the links in notification mails open. */
export const approvalPageRoutes = (services: Services) =>
  new Elysia()
    .get(
      '/approve/:token',
      ({ request, params, query }) => show(services, request, params.token, query),
      { params: Params, query: Query, detail: openOperation({ page: true }) },
    )
    .post(
      '/approve/:token',
      ({ request, params, body }) => act(services, request, params.token, body),
      {
        params: Params,
        body: Form,
        detail: openOperation({ form: true, page: true }),
      },
    )

type Open = {
  kind: ApprovalKind
  wanted: { projectId: string; approvalId: string }
  address: string
  used: boolean
}

/**
 * Returns the approval request to which a link belongs. Returns `null` if no approval request has this link. A wrong
 * token counts as a failed sign-in.
 * @throws {ApiError} 429 after too many wrong tokens in approval links.
 */
async function find(services: Services, request: Request, token: string): Promise<Open | null> {
  const link = APPROVAL_TOKEN.test(token) ? await findApprovalLink(services.pool, token) : null
  const approval = link === null ? null : await findApproval(services.pool, link.approvalId)
  if (link !== null && approval !== null) {
    const { kind, projectId, id: approvalId } = approval
    return { kind, wanted: { projectId, approvalId }, address: link.address, used: link.used }
  }
  await countFailedSignIn(services, networkSubject(stateOf(request).clientAddress))
  return null
}

async function show(
  services: Services,
  request: Request,
  token: string,
  { view, ...asked }: Static<typeof Query>,
): Promise<Response> {
  const open = await find(services, request, token)
  if (open === null) return gone()
  if (open.kind === 'payment') return await paymentPage(services, open)
  if (view === 'html') return await htmlPart(services, open)
  return await pageOf(services, open, asked)
}

/** Returns the HTML part of a held mail, which the approval page shows in a frame. */
async function htmlPart(services: Services, { wanted, used }: Open): Promise<Response> {
  const held = await readHeldRequest(services, wanted)
  const { projectId } = wanted
  const framed =
    used || held.state !== 'waiting' || held.message === null
      ? null
      : await framedMail(services, { projectId, messageId: held.message.messageId })
  return framed ?? gone()
}

/**
 * Tells whether the time of an approval request is over. The clock of the database decides, because it also decides
 * when the owner's decision arrives.
 */
const isLate = async ({ pool }: Services, { approvalId }: Open['wanted']): Promise<boolean> =>
  (await findApproval(pool, approvalId))?.isLate ?? true

/**
 * Returns the approval page of a held mail with the form for the decision. If the approval request has ended, the page
 * tells how it ended.
 */
async function pageOf(
  services: Services,
  { wanted, used }: Open,
  { note, ...asked }: Static<typeof ReviewQuery> & { note?: string } = {},
): Promise<Response> {
  const held = await readHeldRequest(services, wanted)
  if (held.state === 'approved') {
    return personPage(
      sayingHtml('Approved', 'The mail is approved. It leaves at once, or at its time.'),
    )
  }
  if (held.state === 'rejected') {
    return personPage(sayingHtml('Rejected', 'The mail is rejected. It is not sent.'))
  }
  const isOver = held.state === 'expired' || (await isLate(services, wanted))
  if (isOver)
    return personPage(sayingHtml('Expired', 'Nobody decided in time. The mail is not sent.'))
  if (used || held.state === 'withdrawn' || held.message === null || held.sha256 === null) {
    return personPage(sayingHtml('Withdrawn', 'The agent took the mail back. It is not sent.'))
  }
  const review = await readReviewPage(services, wanted, asked)
  const html = approvalHtml({ review, expiresAt: held.expiresAt, note })
  return personPage(html, note === undefined ? 200 : 409)
}

async function act(
  services: Services,
  request: Request,
  token: string,
  form: Static<typeof Form>,
): Promise<Response> {
  const open = await find(services, request, token)
  if (open === null) return gone()
  const { projectId, approvalId } = open.wanted
  const actor = {
    projectId,
    keyPrefix: `link:${open.address}`,
    requestId: stateOf(request).requestId,
  }
  if (open.kind === 'payment') return await actOnPayment(services, open, { actor, token, form })
  const decision =
    form.decision === 'approve'
      ? ({
          state: 'approved',
          hash: Buffer.from(form.sha256, 'hex'),
          trust: form.trust ?? 'none',
        } as const)
      : ({ state: 'rejected', reason: reasonOf(form) } as const)
  const again = (note: string) => pageOf(services, open, { note })
  try {
    const { state, sha256 } = await readHeldRequest(services, open.wanted)
    // If the approval request has already ended, the response tells how the request ended.
    const isOpen = state === 'waiting' && !(await isLate(services, open.wanted))
    if (isOpen && decision.state === 'approved') {
      if (sha256 !== form.sha256) return await again(CHANGED)
      requireSeen(services, { approvalId, sha256, seen: form.seen })
    }
    await decide(services, actor, {
      approvalId,
      decision,
      within: (db) => useApprovalLink(db, token),
    })
    return await pageOf(services, { ...open, used: true })
  } catch (error) {
    if (error instanceof LinkOverError) return gone()
    if (!(error instanceof ApiError) || error.status >= 500) throw error
    return await again(error.message === UNREAD ? 'Read all pages first.' : CHANGED)
  }
}

/**
 * Returns the approval page of a waiting payment with the form for the decision. If the approval request has ended, the
 * page tells how it ended.
 */
async function paymentPage(
  services: Services,
  { wanted, used }: Open,
  note?: string,
): Promise<Response> {
  const asked = await readAskedPayment(services, wanted)
  if (asked.state === 'approved') {
    return personPage(
      sayingHtml('Approved', 'The seller is asked anew. Only the terms that you saw are signed.'),
    )
  }
  if (asked.state === 'rejected') return personPage(sayingHtml('Rejected', 'Nothing is signed.'))
  const isOver = asked.state === 'expired' || (await isLate(services, wanted))
  if (isOver || used)
    return personPage(sayingHtml('Expired', 'Nobody decided in time. Nothing is signed.'))
  return personPage(paymentHtml({ asked, note }), note === undefined ? 200 : 409)
}

async function actOnPayment(
  services: Services,
  open: Open,
  { actor, token, form }: { actor: Actor; token: string; form: Static<typeof Form> },
): Promise<Response> {
  const decision =
    form.decision === 'approve'
      ? ({ state: 'approved', hash: Buffer.from(form.sha256, 'hex') } as const)
      : ({ state: 'rejected', reason: reasonOf(form) } as const)
  try {
    await decideAsked(services, actor, {
      approvalId: open.wanted.approvalId,
      decision,
      within: (db) => useApprovalLink(db, token),
    })
    return await paymentPage(services, open)
  } catch (error) {
    if (error instanceof LinkOverError) return gone()
    if (!(error instanceof ApiError) || error.status >= 500) throw error
    return await paymentPage(services, open, 'The request has changed since. Read it again.')
  }
}
