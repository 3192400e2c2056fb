import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import {
  changeMandate,
  findMandate,
  giveMandate,
  listMandates,
  MANDATES_MAX,
} from '../../sql/purse/mandates.ts'
import { cancelOpen } from '../../sql/purse/stop.ts'
import { platformActor } from '../account/platformActor.ts'
import { conflict, notFound } from '../http/errors.ts'
import { operation, PageQuery } from '../http/operation.ts'
import { cutPage, readPage } from '../http/page.ts'
import type { Services } from '../http/services.ts'
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

const Project = t.Object({ projectId: t.String({ minLength: 1, maxLength: 100 }) })
const MandateParams = t.Composite([
  Project,
  t.Object({ mandateId: t.String({ minLength: 1, maxLength: 64 }) }),
])

const describe = { tag: 'Platform', access: 'platform:manage' } as const
const mandate = {
  status: 200,
  description: 'The mandate.',
  schema: MandateSchema,
  example: EXAMPLE_MANDATE,
}
const NO_MANDATE = { 404: 'Mandate not found, or ended' }

/** Serves the spending mandates that an owner gives to a project. */
export const mandateRoutes = (services: Services) =>
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
        const actor = platformActor(request, projectId)
        const keyring = await services.keyring(services.pool)
        const changed = await changeMandate(services.pool, actor, mandateId, {
          change: (present) => changedTerms(present, body, rulesOf(services)),
          within: async (db, { state }) => {
            if (state !== 'frozen') return
            await cancelOpen(db, keyring, projectId, { kind: 'mandate', mandateId })
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
