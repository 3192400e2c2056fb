import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { USE_METHODS } from '../../shared/vault/bounds/useMethods.ts'
import { HEADERS_MAX, URL_MAX_LENGTH } from '../../shared/vault/useRequest.ts'
import { listPurchases } from '../../sql/purse/purchases/purchases.ts'
import { csvLine } from '../http/csv.ts'
import { badRequest } from '../http/errors.ts'
import { readIdempotencyKey } from '../http/input/idempotencyKey.ts'
import { queryTime } from '../http/input/queryTime.ts'
import { readFiltered } from '../http/limits/searches.ts'
import { operation, PageQuery } from '../http/operation.ts'
import { cutPage, readPage } from '../http/page.ts'
import { callerOf, projectOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { purchase, readPurchase, readPurse } from './purchase.ts'
import {
  EXAMPLE_PURCHASE,
  EXAMPLE_PURSE,
  PurchaseSchema,
  PurseSchema,
  toPurchaseView,
  Usdc,
} from './purseDocs.ts'

/** Describes the HTTP request that an agent pays for. */
export const QuoteFields = {
  url: t.String({ maxLength: URL_MAX_LENGTH, description: 'The request goes to this https URL.' }),
  method: t.Optional(
    t.Union(
      USE_METHODS.map((method) => t.Literal(method)),
      { description: 'The default is POST with a body, and GET without one.' },
    ),
  ),
  headers: t.Optional(
    t.Record(t.String(), t.String(), {
      maxProperties: HEADERS_MAX,
      description: 'Host, Content-Length, Accept-Encoding and payments are the service’s own.',
    }),
  ),
  body: t.Optional(
    t.Unknown({
      description: 'A string is sent unchanged. An object or an array is sent as JSON.',
    }),
  ),
  tool: t.Optional(
    t.Object(
      {
        name: t.String({ minLength: 1, maxLength: 128 }),
        arguments: t.Optional(t.Record(t.String(), t.Unknown())),
      },
      {
        additionalProperties: false,
        description:
          'The request calls this tool of the MCP server at `url` (streamable HTTP). Leave out `method` and `body`.',
      },
    ),
  ),
  credential: t.Optional(
    t.String({
      maxLength: 128,
      description:
        'Name a credential of the vault. The request holds its fields as {{field}}, within the bounds of the credential. The key needs the scope vault:use.',
    }),
  ),
}

export const PayFields = {
  ...QuoteFields,
  maxAmount: Usdc('The request may cost at most this amount, in USDC.'),
  why: t.Optional(
    t.String({ maxLength: 500, description: 'Tell the owner the reason in your own words.' }),
  ),
}

/**
 * Sets how many seconds a call waits for a purchase from a purse (the wallet of a project) if the caller names no time.
 */
const WAIT_DEFAULT_S = 25
const WAIT_MAX_S = 40
const WaitQuery = t.Object({
  timeout: t.Optional(
    t.String({
      pattern: '^(?:[0-9]|[123][0-9]|40)$',
      error: `be a whole number of 0 to ${WAIT_MAX_S}`,
      openapi: { type: 'integer', minimum: 0, maximum: WAIT_MAX_S, default: WAIT_DEFAULT_S },
      description: 'The request waits at most this many seconds for the end.',
    }),
  ),
})
const waitMsOf = ({ timeout }: Static<typeof WaitQuery>) => Number(timeout ?? WAIT_DEFAULT_S) * 1000

const Params = t.Object({
  purchaseId: t.String({ pattern: '^pur_[0-9a-f]{24}$', error: 'be the id of a purchase' }),
})

/** Describes the filters for the list of payments from a purse. */
export const PaymentsQuery = t.Composite([
  PageQuery,
  t.Object({
    payment: t.Optional(
      t.Union([t.Literal('open'), t.Literal('spent'), t.Literal('released')], {
        error: 'be one of "open", "spent", "released"',
        description: 'The list holds only payments in this state.',
      }),
    ),
    state: t.Optional(
      t.Union(
        [t.Literal('answered'), t.Literal('refused'), t.Literal('failed'), t.Literal('unknown')],
        {
          error: 'be one of "answered", "refused", "failed", "unknown"',
          description: 'The list holds only purchases in this state.',
        },
      ),
    ),
    host: t.Optional(
      t.String({ maxLength: 260, description: 'The list holds only purchases at this host.' }),
    ),
    mandate: t.Optional(
      t.String({ maxLength: 64, description: 'The list holds only payments in this mandate.' }),
    ),
    from: t.Optional(
      t.String({
        maxLength: 40,
        description: 'The list holds only entries at this ISO 8601 time or later.',
      }),
    ),
    until: t.Optional(
      t.String({
        maxLength: 40,
        description: 'The list holds only entries before this ISO 8601 time.',
      }),
    ),
  }),
])

/**
 * Returns one page of a project's payments, newest first.
 * @param party is the party for which a list with filters is read, because the parties take turns. By default it is the
 *   project.
 */
export async function listPayments(
  services: Pick<Services, 'pool' | 'searches'>,
  projectId: string,
  { payment, state, host, mandate, from, until, ...page }: Static<typeof PaymentsQuery>,
  party = projectId,
) {
  const { limit, cursor } = readPage(page)
  const wanted = {
    projectId,
    cursor,
    limit: limit + 1,
    money: payment ?? null,
    state: state ?? null,
    host: host ?? null,
    mandateId: mandate ?? null,
    from: queryTime('from', from) ?? null,
    until: queryTime('until', until) ?? null,
  }
  const found = await readFiltered(services, party, [payment, state, host, mandate], (db) =>
    listPurchases(db, wanted),
  )
  const cut = cutPage(found, limit, ({ createdAt }) => createdAt)
  return { payments: cut.page.map(toPurchaseView), count: cut.page.length, ...cut.next }
}

type Page = Awaited<ReturnType<typeof listPayments>>

function paymentsCsv({ payments, nextPageToken }: Page): Response {
  const lines = payments.map(csvFields)
  return new Response([CSV_NAMES, ...lines].map(csvLine).join(''), {
    headers: {
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': 'attachment; filename="purchases.csv"',
      ...(nextPageToken === undefined ? {} : { 'purser-next-page-token': nextPageToken }),
    },
  })
}

const CSV_NAMES = [
  ...['createdAt', 'purchaseId', 'state', 'reason', 'method', 'host', 'path', 'tool', 'status'],
  ...['amountUsdc', 'payTo', 'network', 'payment', 'final', 'paidWithoutContent', 'txHash', 'why'],
]
const csvFields = (one: Static<typeof PurchaseSchema>) => [
  ...[one.createdAt, one.purchaseId, one.state, one.reason, one.method, one.host, one.path],
  ...[one.tool, one.status, one.terms?.amountUsdc ?? null, one.terms?.payTo ?? null],
  ...[one.terms?.network ?? null, one.payment?.state ?? null, one.payment?.final ?? null],
  ...[one.payment?.paidWithoutContent ?? null, one.payment?.txHash ?? null, one.why],
]

export const PaymentsPage = t.Object({
  payments: t.Array(PurchaseSchema),
  count: t.Integer(),
  nextPageToken: t.Optional(t.String()),
})

/** Holds an example of a page of payments for the documentation. The example leaves out the responses of sellers. */
export const EXAMPLE_PAYMENTS = {
  payments: [{ ...EXAMPLE_PURCHASE, response: null }],
  count: 1,
}

const pays = { tag: 'Purse', access: 'purse:pay' } as const
const reads = { tag: 'Purse', access: 'purse:read' } as const
const CREDENTIAL_ERRORS = {
  404: 'The vault has no such credential',
  410: 'The credential has expired',
} as const
const ended = {
  status: 200,
  description: 'The purchase has ended.',
  schema: PurchaseSchema,
  example: EXAMPLE_PURCHASE,
}
const pending = {
  status: 202,
  description: 'It has not ended: read it at /v0/purse/payments/{purchaseId}.',
}

/** Serves the operations that an agent may perform on the purse (the wallet) of its project. */
export const purseRoutes = (services: Services) =>
  new Elysia({ prefix: '/v0/purse' })
    .get('', ({ request }) => readPurse(services, projectOf(request).projectId), {
      detail: operation({
        ...reads,
        summary: 'Get the purse with its balance',
        success: {
          status: 200,
          description: 'The purse.',
          schema: PurseSchema,
          example: EXAMPLE_PURSE,
        },
        errors: { 404: 'The project has no purse' },
      }),
    })
    .post(
      '/pay',
      async ({ request, query, body, set }) => {
        const key = readIdempotencyKey(request.headers.get('idempotency-key'))
        if (key === null) {
          throw badRequest('Idempotency-Key must be there: a repeated request must not pay twice')
        }
        const waitMs = waitMsOf(query)
        const bought = await purchase(services, callerOf(request), 'payment', {
          given: body,
          key,
          waitMs,
        })
        if (bought.endedAt === null) set.status = 202
        return bought
      },
      {
        query: WaitQuery,
        body: t.Object(PayFields),
        detail: operation({
          ...pays,
          summary: 'Send a request, and pay for it if the seller asks',
          description:
            'On a 402 (x402 versions 1 and 2, scheme exact, USDC on the chain of the service) the service checks the offer, ' +
            'reserves the price in every mandate that covers the host, signs one authorization, and sends the request again with it. ' +
            'No redirect is followed. The same Idempotency-Key answers the same purchase, for ever.',
          idempotencyKey: 'required',
          requestExample: { url: 'https://api.example.com/weather', maxAmount: '0.05' },
          success: ended,
          alsoAnswer: pending,
          errors: {
            ...CREDENTIAL_ERRORS,
            409: 'The Idempotency-Key was used for another request',
            429: 'Too many purchases of the project are under way',
          },
        }),
      },
    )
    .post(
      '/quote',
      async ({ request, query, body, set }) => {
        const waitMs = waitMsOf(query)
        const quote = await purchase(services, callerOf(request), 'quote', {
          given: body,
          key: null,
          waitMs,
        })
        if (quote.endedAt === null) set.status = 202
        return quote
      },
      {
        query: WaitQuery,
        body: t.Object(QuoteFields),
        detail: operation({
          ...reads,
          summary: 'Ask for the price of a request',
          description:
            'Sends the request without a payment, and signs nothing. A request that costs nothing is answered.',
          requestExample: { url: 'https://api.example.com/weather' },
          success: {
            ...ended,
            example: {
              ...EXAMPLE_PURCHASE,
              kind: 'quote',
              state: 'quoted',
              status: null,
              response: null,
              payment: null,
            },
          },
          alsoAnswer: pending,
          errors: { ...CREDENTIAL_ERRORS, 429: 'Too many purchases of the project are under way' },
        }),
      },
    )
    .get(
      '/payments',
      async ({ request, query: { format, ...query } }) => {
        const page = await listPayments(services, projectOf(request).projectId, query)
        return format === 'csv' ? paymentsCsv(page) : page
      },
      {
        query: t.Composite([
          PaymentsQuery,
          t.Object({
            format: t.Optional(
              t.Union([t.Literal('json'), t.Literal('csv')], {
                error: 'be one of "json", "csv"',
                description:
                  '`csv` returns one page as text/csv, which begins with a line of names. The header Purser-Next-Page-Token names the next page.',
              }),
            ),
          }),
        ]),
        detail: operation({
          ...reads,
          summary: 'List purchases, newest first',
          description: 'Without the answers of the sellers, and without quotes.',
          success: {
            status: 200,
            description: 'One page of purchases.',
            schema: PaymentsPage,
            example: EXAMPLE_PAYMENTS,
          },
        }),
      },
    )
    .get(
      '/payments/:purchaseId',
      async ({ request, params, query, set }) => {
        const found = await readPurchase(services, callerOf(request), {
          id: params.purchaseId,
          waitMs: waitMsOf(query),
        })
        if (found.endedAt === null) set.status = 202
        return found
      },
      {
        params: Params,
        query: WaitQuery,
        detail: operation({
          ...reads,
          summary: 'Get a purchase',
          success: ended,
          alsoAnswer: pending,
          errors: { 404: 'Purchase not found' },
        }),
      },
    )
