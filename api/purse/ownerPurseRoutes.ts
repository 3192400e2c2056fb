import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { formatUsdc, parseUsdc } from '../../shared/till/usdc.ts'
import type { Actor } from '../../sql/account/audit.ts'
import {
  changeMandate,
  findMandate,
  giveMandate,
  listMandates,
  MANDATES_MAX,
} from '../../sql/purse/mandates.ts'
import { setPayout } from '../../sql/purse/payout.ts'
import { findPurse, openPurse, setLow } from '../../sql/purse/purses.ts'
import { readSpending } from '../../sql/purse/spending.ts'
import { cancelOpen, resumePurse, stopPurse } from '../../sql/purse/stop.ts'
import { checkPayTo } from '../account/payTo.ts'
import { platformActor } from '../account/platformActor.ts'
import { badRequest, conflict, notFound } from '../http/errors.ts'
import { operation, PageQuery } from '../http/operation.ts'
import { cutPage, readPage } from '../http/page.ts'
import type { Services } from '../http/services.ts'
import { refuseUnknown } from '../http/unknownFields.ts'
import { serviceNetwork } from '../till/endpoints/endpointInput.ts'
import {
  changedTerms,
  EXAMPLE_MANDATE,
  MandateBody,
  MandateChange,
  MandateSchema,
  newTerms,
  toMandateView,
} from './mandateInput.ts'
import { readPurse } from './purchase.ts'
import { EXAMPLE_PURSE, PurseSchema, Usdc } from './purseDocs.ts'
import { EXAMPLE_PAYMENTS, listPayments, PaymentsPage, PaymentsQuery } from './purseRoutes.ts'

const Project = t.Object({ projectId: t.String({ minLength: 1, maxLength: 100 }) })
const MandateParams = t.Composite([
  Project,
  t.Object({ mandateId: t.String({ minLength: 1, maxLength: 64 }) }),
])
const PurseChange = t.Object({
  low: t.Optional(t.Union([Usdc('Below it the event purse.low tells.'), t.Null()])),
  max: t.Optional(
    t.Union([Usdc('What is above it goes to payoutAddress. Null: it keeps all.'), t.Null()]),
  ),
  payoutAddress: t.Optional(
    t.Union(
      [
        t.String({
          pattern: '^0x[0-9a-fA-F]{40}$',
          error: 'be an address: 0x and 40 hexadecimal digits',
          description:
            'An address of the owner. A new one counts after 24 hours; null ends it at once.',
        }),
        t.Null(),
      ],
      { error: 'be an address: 0x and 40 hexadecimal digits, or null' },
    ),
  ),
})

const DAYS_DEFAULT = 30
const Days = t.String({
  pattern: '^(?:[1-9]|[1-9][0-9])$',
  error: 'be a whole number of 1 to 99',
  openapi: { type: 'integer', minimum: 1, maximum: 99, default: DAYS_DEFAULT },
})
const Sum = { amountUsdc: t.String(), amountUsdcRaw: t.String(), count: t.Integer() }
const EXAMPLE_SUM = { amountUsdc: '0.05', amountUsdcRaw: '50000', count: 5 }

const describe = { tag: 'Platform', access: 'platform:manage' } as const
const purse = {
  status: 200,
  description: 'The purse.',
  schema: PurseSchema,
  example: EXAMPLE_PURSE,
}
const mandate = {
  status: 200,
  description: 'The mandate.',
  schema: MandateSchema,
  example: EXAMPLE_MANDATE,
}
const NO_PURSE = { 404: 'The project has no purse' }
const NO_MANDATE = { 404: 'Mandate not found, or ended' }

/** What an owner does with the purse of a project: the project's own key can do none of it. */
export const ownerPurseRoutes = (services: Services) =>
  new Elysia({ prefix: '/v0/platform/projects/:projectId' })
    .use(purses(services))
    .use(mandates(services))

const atomicOf = (usdc: string | null): bigint | null => (usdc === null ? null : parseUsdc(usdc))

/** @throws {ApiError} 400 */
async function changePurse(
  { pool }: Services,
  actor: Actor,
  { low, max, payoutAddress }: Static<typeof PurseChange>,
): Promise<void> {
  if (low === undefined && max === undefined && payoutAddress === undefined) {
    throw badRequest('the body must hold low, max or payoutAddress')
  }
  await checkPayTo(pool, payoutAddress, 'payoutAddress')
  const own = payoutAddress == null ? null : await findPurse(pool, actor.projectId)
  if (own !== null && own.address === payoutAddress?.toLowerCase()) {
    throw badRequest('payoutAddress must not be the purse itself')
  }
  if (low !== undefined) await setLow(pool, actor, atomicOf(low))
  if (max === undefined && payoutAddress === undefined) return
  await setPayout(pool, actor, {
    ...(max === undefined ? {} : { maxAtomic: atomicOf(max) }),
    ...(payoutAddress === undefined
      ? {}
      : { payoutAddress: payoutAddress === null ? null : payoutAddress.toLowerCase() }),
  })
}

const purses = (services: Services) =>
  new Elysia()
    .get('/purse', ({ params }) => readPurse(services, params.projectId), {
      params: Project,
      detail: operation({
        ...describe,
        summary: 'Get the purse of a project',
        success: purse,
        errors: NO_PURSE,
      }),
    })
    .post(
      '/purse',
      async ({ request, params: { projectId }, set }) => {
        const actor = platformActor(request, projectId)
        const keyring = await services.keyring(services.pool)
        if (await openPurse(services.pool, keyring, actor)) set.status = 201
        return readPurse(services, projectId)
      },
      {
        params: Project,
        detail: operation({
          ...describe,
          summary: 'Open the purse of a project',
          description:
            'The key is made here and never leaves the service. A second call changes nothing.',
          success: { ...purse, status: 201 },
          alsoAnswer: { status: 200, description: 'The project had it.' },
          errors: { 404: 'Project not found' },
        }),
      },
    )
    .patch(
      '/purse',
      async ({ request, params: { projectId }, body }) => {
        await changePurse(services, platformActor(request, projectId), body)
        return readPurse(services, projectId)
      },
      {
        params: Project,
        body: PurseChange,
        detail: operation({
          ...describe,
          summary: 'Set when its balance is low, and what it keeps at most',
          requestExample: { low: '5', max: '100' },
          success: purse,
          errors: NO_PURSE,
        }),
      },
    )
    .post(
      '/purse/stop',
      async ({ request, params: { projectId } }) => {
        const keyring = await services.keyring(services.pool)
        await stopPurse(services.pool, keyring, platformActor(request, projectId))
        return readPurse(services, projectId)
      },
      {
        params: Project,
        detail: operation({
          ...describe,
          summary: 'Stop the purse at once',
          description:
            'Nothing more is signed. What is signed and unused is cancelled on the chain, unless the seller is faster.',
          success: purse,
          errors: NO_PURSE,
        }),
      },
    )
    .post(
      '/purse/resume',
      async ({ request, params: { projectId } }) => {
        await resumePurse(services.pool, platformActor(request, projectId))
        return readPurse(services, projectId)
      },
      {
        params: Project,
        detail: operation({
          ...describe,
          summary: 'Let the purse sign again',
          success: purse,
          errors: NO_PURSE,
        }),
      },
    )
    .get(
      '/purse/spending',
      ({ params: { projectId }, query: { days } }) =>
        spending(services, projectId, Number(days ?? DAYS_DEFAULT)),
      {
        params: Project,
        query: t.Object({ days: t.Optional(Days) }),
        detail: operation({
          ...describe,
          summary: 'Sum up what a purse has paid, by day and host',
          description: 'Open and spent payments, by the UTC day of their reservation.',
          success: {
            status: 200,
            description: 'The sums; the twenty dearest hosts.',
            schema: t.Object({
              byDay: t.Array(t.Object({ day: t.String(), ...Sum })),
              byHost: t.Array(
                t.Object({
                  host: t.String(),
                  ...Sum,
                  withoutContent: t.Integer({ description: 'Paid, and no 2xx came.' }),
                }),
              ),
            }),
            example: {
              byDay: [{ day: '2026-01-05', ...EXAMPLE_SUM }],
              byHost: [{ host: 'api.example.com', ...EXAMPLE_SUM, withoutContent: 0 }],
            },
          },
        }),
      },
    )
    .get(
      '/purse/payments',
      ({ params, query }) => listPayments(services, params.projectId, query),
      {
        params: Project,
        query: PaymentsQuery,
        detail: operation({
          ...describe,
          summary: 'List the purchases of a project, newest first',
          success: {
            status: 200,
            description: 'One page of purchases.',
            schema: PaymentsPage,
            example: EXAMPLE_PAYMENTS,
          },
        }),
      },
    )

async function spending({ pool }: Services, projectId: string, days: number) {
  const { byDay, byHost } = await readSpending(pool, projectId, days)
  const view = ({ amountAtomic, count }: { amountAtomic: bigint; count: number }) => ({
    amountUsdc: formatUsdc(amountAtomic),
    amountUsdcRaw: String(amountAtomic),
    count,
  })
  return {
    byDay: byDay.map((sum) => ({ day: sum.day, ...view(sum) })),
    byHost: byHost.map(({ host, withoutContent, ...sum }) => ({
      host,
      ...view(sum),
      withoutContent,
    })),
  }
}

const mandates = (services: Services) =>
  new Elysia()
    .get(
      '/mandates',
      async ({ params: { projectId }, query }) => {
        const { limit, cursor } = readPage(query)
        const found = await listMandates(services.pool, { projectId, cursor, limit: limit + 1 })
        const { page, next } = cutPage(found, limit, ({ createdAt }) => createdAt)
        return { mandates: page.map(toMandateView), count: page.length, ...next }
      },
      {
        params: Project,
        query: PageQuery,
        detail: operation({
          ...describe,
          summary: 'List mandates with their sums, newest first',
          success: {
            status: 200,
            description: 'One page of mandates.',
            schema: t.Object({
              mandates: t.Array(MandateSchema),
              count: t.Integer(),
              nextPageToken: t.Optional(t.String()),
            }),
            example: { mandates: [EXAMPLE_MANDATE], count: 1 },
          },
        }),
      },
    )
    .post(
      '/mandates',
      async ({ request, params: { projectId }, body, set }) => {
        refuseUnknown('The body', body, Object.keys(MandateBody.properties))
        const network = await serviceNetwork(services)
        const terms = newTerms(body, network, rulesOf(services))
        const given = await giveMandate(services.pool, platformActor(request, projectId), terms)
        if (given === null) throw notFound('Project not found')
        if (given === 'full') throw conflict(`A project has at most ${MANDATES_MAX} live mandates`)
        set.status = 201
        return toMandateView(given)
      },
      {
        params: Project,
        body: MandateBody,
        detail: operation({
          ...describe,
          summary: 'Give a mandate',
          description:
            'A payment must fit every active mandate that covers its host or URL, and counts in each. Without a mandate nothing is paid.',
          requestExample: {
            name: 'Weather data',
            hosts: ['api.example.com'],
            maxPerPayment: '0.05',
            maxPerDay: '2',
          },
          success: { ...mandate, status: 201 },
          errors: { 404: 'Project not found', 409: 'The project has too many mandates' },
        }),
      },
    )
    .get(
      '/mandates/:mandateId',
      async ({ params: { projectId, mandateId } }) => {
        const found = await findMandate(services.pool, projectId, mandateId)
        if (found === null) throw notFound('Mandate not found')
        return toMandateView(found)
      },
      {
        params: MandateParams,
        detail: operation({
          ...describe,
          summary: 'Get a mandate with its sums',
          success: mandate,
          errors: { 404: 'Mandate not found' },
        }),
      },
    )
    .patch(
      '/mandates/:mandateId',
      async ({ request, params: { projectId, mandateId }, body }) => {
        refuseUnknown('The body', body, Object.keys(MandateChange.properties))
        const actor = platformActor(request, projectId)
        const keyring = await services.keyring(services.pool)
        const changed = await changeMandate(services.pool, actor, mandateId, {
          change: (present) => changedTerms(present, body, rulesOf(services)),
          within: async (db, { state }) => {
            if (state === 'frozen') await cancelOpen(db, keyring, projectId, mandateId)
          },
        })
        if (changed === null) throw notFound('Mandate not found, or ended')
        return toMandateView(changed)
      },
      {
        params: MandateParams,
        body: MandateChange,
        detail: operation({
          ...describe,
          summary: 'Change or stop a mandate',
          description: 'What is left out stays. What is signed already stays signed, and counts.',
          requestExample: { maxPerDay: '1' },
          success: mandate,
          errors: NO_MANDATE,
        }),
      },
    )
    .delete(
      '/mandates/:mandateId',
      async ({ request, params: { projectId, mandateId } }) => {
        const actor = platformActor(request, projectId)
        const ended = await changeMandate(services.pool, actor, mandateId, {
          change: (present) => ({ ...present, validFrom: null, state: 'ended' }),
        })
        if (ended === null) throw notFound('Mandate not found, or ended')
        return new Response(null, { status: 204 })
      },
      {
        params: MandateParams,
        detail: operation({
          ...describe,
          summary: 'End a mandate',
          success: { status: 204, description: 'It allows nothing any more. Its record stays.' },
          errors: NO_MANDATE,
        }),
      },
    )

const rulesOf = ({ config }: Services) => ({ allowPrivate: config.allowPrivateNetworks })
