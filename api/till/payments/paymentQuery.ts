/** Reads the query parameters that select a seller's payments. */
import { type Static, Type as t } from '@sinclair/typebox'
import { parseUsdc, USDC_AMOUNT_PATTERN, UsdcAmountError } from '../../../shared/till/usdc.ts'
import type { PaymentFilter } from '../../../sql/till/payments/payments.ts'
import { badRequest } from '../../http/errors.ts'
import { queryTime } from '../../http/input/queryTime.ts'

const DAYS_DEFAULT = 30
const DAYS_MAX = 90
const DAY_MS = 24 * 60 * 60 * 1000

export const Days = t.Optional(
  t.String({
    pattern: '^[1-9][0-9]?$',
    error: `be a whole number from 1 to ${DAYS_MAX}`,
    openapi: { type: 'integer', minimum: 1, maximum: DAYS_MAX, default: DAYS_DEFAULT },
    description: 'The answer covers this many days in UTC, and today is one of these days.',
  }),
)

/** Returns the start of the first day of a period that ends today. @throws {ApiError} 400 for too many days. */
export function readDays(given: string | undefined): Date {
  const days = Number(given ?? DAYS_DEFAULT)
  if (days > DAYS_MAX) throw badRequest(`days must be a whole number from 1 to ${DAYS_MAX}`)
  return new Date((Math.floor(Date.now() / DAY_MS) - days + 1) * DAY_MS)
}

export const EndpointId = t.Optional(
  t.String({ pattern: '^se_[0-9a-f]{24}$', error: 'be the id of an endpoint, se_…' }),
)
const When = (description: string) =>
  t.Optional(
    t.String({ maxLength: 40, error: 'be an ISO 8601 time with its zone, or a date', description }),
  )
const Amount = (description: string) =>
  t.Optional(
    t.String({
      maxLength: 64,
      pattern: USDC_AMOUNT_PATTERN.source,
      error: 'be a decimal USDC amount with at most 6 decimals, such as 0.01',
      description,
    }),
  )

/** Describes the filters of a list of payments. */
export const PAYMENT_FILTERS = {
  status: t.Optional(
    t.Union([t.Literal('verified'), t.Literal('settled'), t.Literal('failed')], {
      error: 'be one of "verified", "settled", "failed"',
    }),
  ),
  endpointId: EndpointId,
  payer: t.Optional(
    t.String({
      pattern: '^0x[0-9a-fA-F]{40}$',
      error: 'be an address: 0x and 40 hexadecimal digits',
    }),
  ),
  from: When('The list holds only payments that were claimed at this time or later.'),
  to: When('The list holds only payments that were claimed before this time.'),
  minAmountUsdc: Amount('The list holds only payments of at least this amount.'),
  maxAmountUsdc: Amount('The list holds only payments of at most this amount.'),
}

const Filters = t.Object(PAYMENT_FILTERS)

/** Reads the filters of a list of payments. @throws {ApiError} 400 for an invalid filter. */
export function readFilter(query: Static<typeof Filters>): PaymentFilter {
  return {
    state: query.status ?? null,
    endpointId: query.endpointId ?? null,
    payer: query.payer ?? null,
    from: queryTime('from', query.from) ?? null,
    to: queryTime('to', query.to) ?? null,
    minAtomic: readAmount('minAmountUsdc', query.minAmountUsdc),
    maxAtomic: readAmount('maxAmountUsdc', query.maxAmountUsdc),
  }
}

/** Reads an amount of USDC from a query parameter. @throws {ApiError} 400 for an invalid amount. */
export function readAmount(field: string, amount: string | undefined): bigint | null {
  if (amount === undefined) return null
  try {
    return parseUsdc(amount)
  } catch (error) {
    if (!(error instanceof UsdcAmountError)) throw error
    throw badRequest(`${field}${error.message.replace(/^amount/, '')}`)
  }
}
