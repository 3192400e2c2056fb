import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import {
  APPROVAL_STATES,
  type Approval,
  findApproval,
  listApprovals,
} from '../../sql/account/approvals.ts'
import type { Actor } from '../../sql/account/audit.ts'
import type { Client, Queryable } from '../../sql/db.ts'
import {
  type AskedPayment,
  decidePayment,
  type PaymentDecision,
  readAsked,
  readWaitingRequest,
} from '../../sql/purse/purchases/askedPayments.ts'
import { findPurchase } from '../../sql/purse/purchases/purchases.ts'
import { platformActor, stillAdmitted } from '../account/platformActor.ts'
import { ApiError, conflict, notFound } from '../http/errors.ts'
import { operation, PageQuery, Time } from '../http/operation.ts'
import { cutPage, readPage } from '../http/page.ts'
import type { Services } from '../http/services.ts'
import { REASON_MAX_LENGTH, State } from '../mail/approval/heldDocs.ts'
import { EXAMPLE_PURCHASE, PurchaseSchema, toPurchaseView } from './purseDocs.ts'

const Sha256 = t.String({ pattern: '^[0-9a-f]{64}$', error: 'be 64 hexadecimal digits' })

const AskedSchema = t.Object({
  approvalId: t.String({ examples: ['apr_0a1b2c3d4e5f60718293a4b5'] }),
  state: t.String({ enum: [...APPROVAL_STATES] }),
  askedFor: t.String({
    enum: ['above_limit', 'new_payee', 'price_rose'],
    description: 'This reason says why the payment needs your approval.',
  }),
  sha256: t.String({
    description: 'The hash is the SHA-256 of the terms: price, payee, token, chain and resource.',
  }),
  purchase: PurchaseSchema,
  requestedAt: Time,
  expiresAt: Time,
  decidedAt: t.Union([Time, t.Null()]),
  decidedBy: t.Union([t.String(), t.Null()]),
  reason: t.Union([t.String(), t.Null()]),
})

const RequestSchema = t.Union(
  [
    t.Object({
      url: t.String(),
      headers: t.Record(t.String(), t.String()),
      body: t.Union([t.String(), t.Null()]),
    }),
    t.Null(),
  ],
  {
    description:
      'The agent wrote this request, which has names in place of the secrets of a credential. The field is null after the decision.',
  },
)
const WholeSchema = t.Composite([AskedSchema, t.Object({ request: RequestSchema })])

type AskedView = Static<typeof AskedSchema>
type WholeView = Static<typeof WholeSchema>

const EXAMPLE: AskedView = {
  approvalId: 'apr_0a1b2c3d4e5f60718293a4b5',
  state: 'waiting',
  askedFor: 'above_limit',
  sha256: '5f'.repeat(32),
  purchase: { ...EXAMPLE_PURCHASE, state: 'waiting', status: null, response: null, payment: null },
  requestedAt: '2026-01-05T09:30:00.000Z',
  expiresAt: '2026-01-08T09:30:00.000Z',
  decidedAt: null,
  decidedBy: null,
  reason: null,
}

const Project = t.Object({ projectId: t.String({ minLength: 1, maxLength: 100 }) })
const Params = t.Composite([
  Project,
  t.Object({ approvalId: t.String({ minLength: 1, maxLength: 64 }) }),
])
const ListQuery = t.Composite([PageQuery, t.Object({ state: t.Optional(State) })])

const WHOLE_EXAMPLE: WholeView = {
  ...EXAMPLE,
  request: { url: 'https://api.example.com/report?city=Berlin', headers: {}, body: null },
}

type Stores = Pick<Services, 'pool' | 'keyring'>
type Wanted = { projectId: string; approvalId: string }

/**
 * Returns an approval request for a payment, with its purchase and the purchase's HTTP request. @throws {ApiError} 404
 * for an unknown approval request.
 */
export async function readAskedPayment(
  { pool, keyring }: Stores,
  { projectId, approvalId }: Wanted,
): Promise<WholeView> {
  const approval = await findApproval(pool, approvalId)
  if (approval?.kind !== 'payment' || approval.projectId !== projectId) {
    throw notFound('Request not found')
  }
  const [view] = await toViews(pool, projectId, [approval])
  if (view === undefined) throw notFound('Purchase not found')
  const about = { projectId, id: approval.subject }
  const request = await readWaitingRequest(pool, await keyring(pool), about)
  return {
    ...view,
    request: request && { url: request.url, headers: request.headers, body: request.body },
  }
}

/** Returns one page of the approval requests for payments that have the given state, newest first. */
async function listAsked(
  { pool }: Pick<Stores, 'pool'>,
  projectId: string,
  { state = 'waiting', ...query }: Static<typeof ListQuery>,
) {
  const { limit, cursor } = readPage(query)
  const filter = { projectId, kind: 'payment', state, cursor } as const
  const found = await listApprovals(pool, { ...filter, limit: limit + 1 })
  const { page, next } = cutPage(found, limit, ({ requestedAt }) => requestedAt)
  const asked = await toViews(pool, projectId, page)
  return { asked, count: asked.length, ...next }
}

async function toViews(
  db: Queryable,
  projectId: string,
  approvals: readonly Approval[],
): Promise<AskedView[]> {
  const ids = approvals.map(({ subject }) => subject)
  const asked = await readAsked(db, projectId, ids)
  const views = await Promise.all(
    approvals.map(async (approval) => {
      const known = asked.get(approval.subject)
      const purchase = await findPurchase(db, { projectId, id: approval.subject, keyring: null })
      return known === undefined || purchase === null
        ? []
        : [toView(approval, known, toPurchaseView(purchase))]
    }),
  )
  return views.flat()
}

const toView = (
  approval: Approval,
  { askedFor, hash }: AskedPayment,
  purchase: Static<typeof PurchaseSchema>,
): AskedView => ({
  approvalId: approval.id,
  state: approval.state,
  askedFor,
  sha256: hash.toString('hex'),
  purchase,
  requestedAt: approval.requestedAt.toISOString(),
  expiresAt: approval.expiresAt.toISOString(),
  decidedAt: approval.decidedAt?.toISOString() ?? null,
  decidedBy: approval.decidedBy,
  reason: approval.reason,
})

/**
 * Records the owner's decision about a payment that waits for approval. If the owner makes the same decision again,
 * nothing changes.
 * @throws {ApiError} 404 for an unknown approval request. 409 if the owner already made another decision, or if the
 * hash belongs to other terms. 410 if the approval request has expired.
 */
export async function decideAsked(
  services: Stores,
  actor: Actor,
  wanted: {
    approvalId: string
    decision: PaymentDecision
    within?: (db: Client) => Promise<void>
  },
): Promise<WholeView> {
  const { approvalId, decision, within } = wanted
  const end = await decidePayment(services.pool, actor, {
    id: approvalId,
    decision,
    ...(within === undefined ? {} : { within }),
  })
  if (end === null) throw notFound('Request not found')
  const { kind, approval } = end
  if (kind === 'changed') throw conflict('sha256 must be that of the terms: read the request again')
  if (kind === 'late') throw new ApiError(410, 'expired', 'The request has expired')
  const isSame =
    approval.state === decision.state &&
    (decision.state !== 'approved' || approval.contentHash?.equals(decision.hash) === true)
  if (kind === 'before' && !isSame) throw conflict(`The request is ${approval.state} already`)
  return await readAskedPayment(services, { projectId: actor.projectId, approvalId })
}

const describe = { tag: 'Platform', access: 'platform:manage' } as const
const whole = {
  status: 200,
  description: 'The request.',
  schema: WholeSchema,
  example: WHOLE_EXAMPLE,
}
const ERRORS = {
  404: 'Request not found',
  409: 'The request is decided otherwise, or the terms are others than those of sha256',
  410: 'The request has expired',
}

/** Serves the payments that wait for the owner's approval. */
export const askedRoutes = (services: Services) =>
  new Elysia({ prefix: '/v0/platform/projects/:projectId/purse/asked' })
    .get('', ({ params, query }) => listAsked(services, params.projectId, query), {
      params: Project,
      query: ListQuery,
      detail: operation({
        ...describe,
        summary: 'List payments that wait for approval, newest first',
        success: {
          status: 200,
          description: 'One page of requests.',
          schema: t.Object({
            asked: t.Array(AskedSchema),
            count: t.Integer(),
            nextPageToken: t.Optional(t.String()),
          }),
          example: { asked: [EXAMPLE], count: 1 },
        },
      }),
    })
    .get('/:approvalId', ({ params }) => readAskedPayment(services, params), {
      params: Params,
      detail: operation({
        ...describe,
        summary: 'Get a payment that waits, with the hash of its terms and its request',
        success: whole,
        errors: { 404: 'Request not found' },
      }),
    })
    .post(
      '/:approvalId/approve',
      ({ request, params: { projectId, approvalId }, body: { sha256 } }) =>
        decideAsked(services, platformActor(request, projectId), {
          approvalId,
          decision: { state: 'approved', hash: Buffer.from(sha256, 'hex') },
          within: stillAdmitted(request),
        }),
      {
        params: Params,
        body: t.Object({ sha256: Sha256 }),
        detail: operation({
          ...describe,
          summary: 'Approve a payment',
          description:
            'The seller is asked anew, and only the terms with this hash are signed. The mandates still hold. Approving twice changes nothing.',
          requestExample: { sha256: EXAMPLE.sha256 },
          success: whole,
          errors: ERRORS,
        }),
      },
    )
    .post(
      '/:approvalId/reject',
      ({ request, params: { projectId, approvalId }, body: { reason } }) =>
        decideAsked(services, platformActor(request, projectId), {
          approvalId,
          decision: { state: 'rejected', reason: reason?.trim() || null },
          within: stillAdmitted(request),
        }),
      {
        params: Params,
        body: t.Object({ reason: t.Optional(t.String({ maxLength: REASON_MAX_LENGTH })) }),
        detail: operation({
          ...describe,
          summary: 'Reject a payment',
          description:
            'Nothing is signed. The agent gets the event purse.refused and reads the reason.',
          requestExample: { reason: 'Too expensive.' },
          success: whole,
          errors: ERRORS,
        }),
      },
    )
