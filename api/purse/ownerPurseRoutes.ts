import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { formatUsdc, parseUsdc } from '../../shared/till/usdc.ts'
import type { Actor } from '../../sql/account/audit.ts'
import { setPurseLimits } from '../../sql/purse/payout.ts'
import { isAnyPurseAddress, openPurse } from '../../sql/purse/purses.ts'
import { readSpending } from '../../sql/purse/spending.ts'
import { resumePurse, stopPurse } from '../../sql/purse/stop.ts'
import { checkPayTo } from '../account/payTo.ts'
import { platformActor } from '../account/platformActor.ts'
import { badRequest } from '../http/errors.ts'
import { peopleOf } from '../http/limits/loopTime.ts'
import { operation } from '../http/operation.ts'
import type { Services } from '../http/services.ts'
import { mandateRoutes } from './mandateRoutes.ts'
import { readPurse } from './purchase.ts'
import { EXAMPLE_PURSE, PurseSchema, Usdc } from './purseDocs.ts'
import { EXAMPLE_PAYMENTS, listPayments, PaymentsPage, PaymentsQuery } from './purseRoutes.ts'

const Project = t.Object({ projectId: t.String({ minLength: 1, maxLength: 100 }) })
const PurseChange = t.Object({
  low: t.Optional(
    t.Union([Usdc('Below this balance, the service sends the event purse.low.'), t.Null()]),
  ),
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
const NO_PURSE = { 404: 'The project has no purse' }

/**
 * Serves the operations on the purse (the wallet) of a project that only its owner may perform. A caller with the
 * project's own key may use none of them.
 */
export const ownerPurseRoutes = (services: Services) =>
  new Elysia({ prefix: '/v0/platform/projects/:projectId' })
    .use(purses(services))
    .use(mandateRoutes(services))

const atomicOf = (usdc: string | null): bigint | null => (usdc === null ? null : parseUsdc(usdc))

/** Changes the limits and the payout address of a purse. @throws {ApiError} 400 for an invalid change. */
async function changePurse(
  { pool, keyring, config }: Services,
  actor: Actor,
  { low, max, payoutAddress }: Static<typeof PurseChange>,
): Promise<void> {
  if (low === undefined && max === undefined && payoutAddress === undefined) {
    throw badRequest('the body must hold low, max or payoutAddress')
  }
  await checkPayTo(pool, payoutAddress, 'payoutAddress')
  // Two purses that pay out to each other would send their money back and forth, at the cost of the operator's gas.
  if (payoutAddress != null && (await isAnyPurseAddress(pool, payoutAddress))) {
    throw badRequest('payoutAddress must not be a purse of this service')
  }
  if (config.chain.deniedPayees.includes(payoutAddress?.toLowerCase() ?? '')) {
    throw badRequest('payoutAddress must not be an address that the operator forbids')
  }
  await setPurseLimits(pool, await keyring(pool), actor, {
    ...(low === undefined ? {} : { lowAtomic: atomicOf(low) }),
    ...(max === undefined ? {} : { maxAtomic: atomicOf(max) }),
    ...(payoutAddress === undefined ? {} : { payoutAddress: payoutAddress?.toLowerCase() ?? null }),
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
                  withoutContent: t.Integer({
                    description: 'True lists only purchases that were paid and got no 2xx answer.',
                  }),
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
      ({ params: { projectId }, query }) =>
        listPayments(services, projectId, query, peopleOf(projectId)),
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
