import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { decodeCursor, encodeCursor } from '../../../shared/cursor.ts'
import { formatUsdc } from '../../../shared/till/usdc.ts'
import type { Pool } from '../../../sql/db.ts'
import {
  BOOK_DELAY_S,
  type BookCursor,
  type BookEntry,
  listBookEntries,
  readBookEnd,
} from '../../../sql/till/payments/books.ts'
import { csvLine } from '../../http/csv.ts'
import { ApiError, badRequest } from '../../http/errors.ts'
import { queryTime } from '../../http/input/queryTime.ts'
import { operation } from '../../http/operation.ts'
import { callerOf, projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'

/**
 * Sets the maximum number of accounting entries in one response. A client continues the accounting export with the
 * cursor of the last entry.
 */
const ENTRIES_MAX = 10_000
/** Sets the maximum number of accounting entries that one database query reads. */
const PAGE = 500
/** Sets how long a request about a past period waits until the entries of the period are committed. */
const END_WAIT_MS = 5_000
const END_POLL_MS = 200

const When = (description: string) =>
  t.Optional(
    t.String({
      maxLength: 40,
      error: 'be an ISO 8601 time with its zone, or a date',
      description,
    }),
  )
const Query = t.Object({
  from: When(
    'The file holds payments that were settled at this time or later. By default the file begins with the first payment.',
  ),
  to: When(
    `The file holds payments that were settled before this time. The default is ${BOOK_DELAY_S} seconds ago.`,
  ),
  format: t.Optional(
    t.Union([t.Literal('csv'), t.Literal('jsonl')], {
      error: 'be one of "csv", "jsonl"',
      description:
        '`csv` is the default and begins with a line of names. `jsonl` holds one object in each line.',
    }),
  ),
  pageToken: t.Optional(
    t.String({
      maxLength: 64,
      description: 'Send the cursor of the last entry that you read, unchanged.',
    }),
  ),
})

const FORMATS = {
  csv: { type: 'text/csv; charset=utf-8', ending: 'csv' },
  jsonl: { type: 'application/jsonl', ending: 'jsonl' },
} as const

/** Serves the accounting records of a seller. */
export const bookRoutes = ({ pool }: Services) =>
  new Elysia().get(
    '/v0/payments/export',
    ({ request, query }) => exportBooks(pool, request, query),
    {
      query: Query,
      detail: operation({
        tag: 'Payments',
        access: 'payments:accept',
        summary: 'Export the books: payments, refunds, and what the purse paid',
        description:
          'Streams what the chain shows, oldest first. kind: payment (it came in), refund (it went back; paymentId names what it pays ' +
          'back), purchase and sweep (out of the purse; only for keys with purse:read). A reorganisation can move an entry, or undo it, until final is true. An entry appears ' +
          `${BOOK_DELAY_S} seconds after its settlement, so that no later entry comes before your last cursor. feeWei is ` +
          "the entry's share of its transaction's fee, which a gas wallet of the service paid; the shares of a group add up to the " +
          `fee. own: the other side is one of the project's ownAddresses. An answer has at most ${ENTRIES_MAX} entries: ask again with the cursor ` +
          'of the last one as pageToken, until an answer has none.',
        success: {
          status: 200,
          description: 'The entries; application/jsonl for jsonl.',
          contentType: 'text/csv',
          schema: t.String(),
          example: `${csvLine(Object.keys(EXAMPLE))}${csvLine(Object.values(EXAMPLE))}`,
        },
      }),
    },
  )

type Entry = Record<string, string | number | boolean | null>

const toEntry = (entry: BookEntry): Entry => ({
  kind: entry.kind,
  id: entry.id,
  paymentId: entry.kind === 'payment' ? entry.id : entry.refundOf,
  settledAt: entry.settledAt.toISOString(),
  endpointId: entry.endpointId,
  resourceUrl: entry.resourceUrl,
  payerAddress: entry.payer,
  recipientAddress: entry.recipient,
  own: entry.isOwn,
  amountUsdc: formatUsdc(entry.amountAtomic),
  amountUsdcRaw: entry.amountAtomic.toString(),
  network: entry.network,
  asset: entry.asset,
  txHash: entry.txHash,
  logIndex: entry.logIndex,
  blockNumber: entry.blockNumber === null ? null : Number(entry.blockNumber),
  final: entry.isFinal,
  feeWei: entry.feeWei?.toString() ?? null,
  cursor: encodeCursor({ atMs: entry.settledAt.getTime(), row: entry.row }),
})

const EXAMPLE = toEntry({
  row: 7n,
  kind: 'payment',
  id: 'pay_0a1b2c3d4e5f60718293a4b5',
  refundOf: null,
  settledAt: new Date('2026-01-05T10:00:00.000Z'),
  endpointId: 'se_0a1b2c3d4e5f60718293a4b5',
  resourceUrl: 'https://api.example.com/report',
  payer: `0x${'1a'.repeat(20)}`,
  recipient: `0x${'2b'.repeat(20)}`,
  isOwn: false,
  amountAtomic: 10_000n,
  network: 'base',
  asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  txHash: `0x${'3c'.repeat(32)}`,
  logIndex: 12,
  blockNumber: 40_000_000n,
  isFinal: true,
  feeWei: 1_234_567_890n,
})

async function exportBooks(
  pool: Pool,
  request: Request,
  query: Static<typeof Query>,
): Promise<Response> {
  const { projectId } = projectOf(request)
  const withPurse = callerOf(request).scopes.includes('purse:read')
  const format = query.format ?? 'csv'
  const { type, ending } = FORMATS[format]
  const from = queryTime('from', query.from) ?? new Date(0)
  const to = queryTime('to', query.to)
  if (to !== undefined && to < from) throw badRequest('to must not be earlier than from')
  const after = cursorOf(query.pageToken)
  const headers = {
    'content-type': type,
    'content-disposition': `attachment; filename="payments.${ending}"`,
  }
  if (request.method === 'HEAD') return new Response(null, { headers })
  const end = await bookEnd(pool, to)
  const lines = linesOf(pool, { projectId, from, to: end, after, format, withPurse })
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value, done } = await lines.next()
        if (done) controller.close()
        else controller.enqueue(Buffer.from(value))
      },
      cancel: () => void lines.return(undefined),
    },
    { highWaterMark: 1 },
  )
  return new Response(body, { headers })
}

/**
 * Returns the end of the period whose accounting entries the response may contain. All entries before this end are
 * committed, so a later response never contains an earlier entry. If `to` is in the past, the function waits until all
 * entries before `to` are committed.
 * @throws ApiError 503 if this takes too long.
 */
async function bookEnd(pool: Pool, to: Date | undefined): Promise<Date> {
  const untilMs = performance.now() + END_WAIT_MS
  for (;;) {
    const { end, now } = await readBookEnd(pool)
    if (to === undefined || to > now) return end
    if (to <= end) return to
    if (performance.now() > untilMs) {
      const message = `The payments before \`to\` are still being recorded: try again in ${BOOK_DELAY_S} seconds`
      throw new ApiError(503, 'unavailable', message, { 'retry-after': String(BOOK_DELAY_S) })
    }
    await Bun.sleep(END_POLL_MS)
  }
}

/**
 * Returns the lines of the accounting export, and reads the entries page by page from the database. When the client
 * stops reading, the service also stops the queries.
 */
async function* linesOf(
  pool: Pool,
  {
    after,
    format,
    ...wanted
  }: {
    projectId: string
    from: Date
    to: Date
    after: BookCursor | null
    withPurse: boolean
    format: keyof typeof FORMATS
  },
): AsyncGenerator<string> {
  if (format === 'csv') yield csvLine(Object.keys(EXAMPLE))
  let cursor = after
  for (let read = 0; read < ENTRIES_MAX; read += PAGE) {
    const entries = await listBookEntries(pool, { ...wanted, after: cursor, limit: PAGE })
    const last = entries.at(-1)
    if (last === undefined) return
    yield entries
      .map(toEntry)
      .map((entry) =>
        format === 'csv' ? csvLine(Object.values(entry)) : `${JSON.stringify(entry)}\n`,
      )
      .join('')
    if (entries.length < PAGE) return
    cursor = { settledAt: last.settledAt, row: last.row }
  }
}

function cursorOf(token: string | undefined): BookCursor | null {
  if (token === undefined) return null
  const cursor = decodeCursor(token)
  if (cursor === null) throw badRequest('pageToken must be the cursor of an entry, unchanged')
  return { settledAt: new Date(cursor.atMs), row: cursor.row }
}
