/**
 * Describes the terms of a mandate (a limit on the payments of a project) in the form in which the owner writes them.
 * Amounts are in USDC, and hosts and URLs are text.
 */
import { type Static, Type as t } from '@sinclair/typebox'
import { normalUrl } from '../../shared/http/normalUrl.ts'
import { outboundUrlFault } from '../../shared/http/outboundUrl.ts'
import { parseIsoTime } from '../../shared/isoTime.ts'
import { formatUsdc, parseUsdc } from '../../shared/till/usdc.ts'
import { ALLOWED_HOST_RULE, parseAllowedHost } from '../../shared/vault/bounds/allowedHosts.ts'
import type { Mandate, MandateState, MandateTerms } from '../../sql/purse/mandates.ts'
import { badRequest } from '../http/errors.ts'
import { Time } from '../http/operation.ts'
import { Usdc } from './purseDocs.ts'

const PLACES_MAX = 50
const PAYEES_MAX = 50
const PER_MINUTE_DEFAULT = 60
const PER_MINUTE_MAX = 10_000
const RISE_DEFAULT = 20
const RISE_MAX = 10_000

const optional = (description: string) => t.Optional(t.Union([Usdc(description), t.Null()]))
const TIME_RULE = 'be an ISO 8601 time with its zone, or a date'
const At = t.Optional(
  t.Union([t.String({ maxLength: 40 }), t.Null()], {
    error: TIME_RULE,
    description: 'The time is ISO 8601 with a zone, or a date, which means 00:00 UTC.',
    examples: ['2026-01-31T09:30:00Z'],
  }),
)

/**
 * Matches a text without control characters. The pattern lists the code points of control characters. The shorter
 * `\p{Cc}` needs the regular-expression flag `u`, which a pattern in JSON Schema does not have.
 */
const NO_CONTROLS = '^[^\\u0000-\\u001f\\u007f-\\u009f]+$'

const MandateName = t.String({
  minLength: 1,
  maxLength: 100,
  pattern: NO_CONTROLS,
  error: 'be 1 to 100 characters without control characters',
})

/** Describes the fields of a mandate (a spending limit) that a change may set. */
const MandateFields = {
  name: t.Optional(MandateName),
  task: t.Optional(
    t.Union([t.String({ minLength: 1, maxLength: 100 }), t.Null()], {
      description: 'You can name a task here, for your books.',
    }),
  ),
  hosts: t.Optional(
    t.Array(t.String({ maxLength: 260 }), {
      maxItems: PLACES_MAX,
      description: 'Hosts such as api.example.com, or *.example.com for all below it.',
    }),
  ),
  resources: t.Optional(
    t.Array(t.String({ maxLength: 2_048 }), {
      maxItems: PLACES_MAX,
      description: 'Each entry is a URL without a query, and allows only this URL.',
    }),
  ),
  payees: t.Optional(
    t.Union(
      [t.Array(t.String({ maxLength: 42 }), { minItems: 1, maxItems: PAYEES_MAX }), t.Null()],
      {
        description:
          'Only these addresses may be paid. Null means that any address may be paid, and that a new address needs your approval.',
      },
    ),
  ),
  maxPerPayment: t.Optional(Usdc('One payment may cost at most this amount.')),
  maxPerHour: optional('The most in an hour that begins at minute 0 (UTC).'),
  maxPerDay: optional('The most in a day (UTC).'),
  maxPerMonth: optional('The most in a month (UTC).'),
  maxTotal: optional('The most in all.'),
  paymentsPerMinute: t.Optional(t.Integer({ minimum: 1, maximum: PER_MINUTE_MAX })),
  askAbove: optional('A price above it asks you; null: none does.'),
  risePercent: t.Optional(
    t.Integer({
      minimum: 0,
      maximum: RISE_MAX,
      description:
        'If a price rises by more than this percentage above the last price of its URL, the payment needs your approval.',
    }),
  ),
  validFrom: At,
  validUntil: At,
}

const ChangeBody = t.Object(MandateFields)
type Given = Static<typeof ChangeBody>

/** Describes a new mandate (a limit on the payments of a project). */
export const MandateBody = t.Composite([
  t.Omit(ChangeBody, ['name', 'maxPerPayment']),
  t.Object({
    name: MandateName,
    maxPerPayment: Usdc('One payment may cost at most this amount.'),
  }),
])

/**
 * Describes a change of a spending mandate. Fields that the change leaves out stay as they are. The value `null`
 * removes a limit.
 */
export const MandateChange = t.Composite([
  ChangeBody,
  t.Object({
    state: t.Optional(
      t.Union([t.Literal('active'), t.Literal('stopped')], {
        error: 'be one of "active", "stopped"',
        description:
          'With `stopped`, the hosts of this mandate are not paid, even if another mandate covers them.',
      }),
    ),
  }),
])

const EMPTY: Omit<MandateTerms, 'name' | 'network' | 'perPaymentAtomic'> = {
  task: null,
  hosts: [],
  resources: [],
  payees: null,
  limits: { hour: null, day: null, month: null, total: null },
  paymentsPerMinute: PER_MINUTE_DEFAULT,
  askAboveAtomic: null,
  risePercent: RISE_DEFAULT,
  validFrom: null,
  validUntil: null,
}

type Rules = { allowPrivate: boolean }

/** Returns the terms of a new spending mandate. @throws {ApiError} 400 for invalid terms. */
export const newTerms = (
  given: Static<typeof MandateBody>,
  network: string,
  rules: Rules,
): MandateTerms =>
  merged({ ...EMPTY, name: given.name, network, perPaymentAtomic: 0n }, given, {
    ...rules,
    start: null,
  })

/** Returns all terms of a mandate (a spending limit) after a change. @throws {ApiError} 400 for invalid terms. */
export const changedTerms = (
  present: Mandate,
  { state, ...given }: Static<typeof MandateChange>,
  rules: Rules,
): MandateTerms & { state: MandateState } => ({
  ...merged(
    { ...present, validFrom: null },
    // A mandate without a start time is valid from now on.
    given.validFrom === null ? { ...given, validFrom: new Date().toISOString() } : given,
    { ...rules, start: present.validFrom },
  ),
  state: state === undefined ? present.state : state === 'active' ? 'active' : 'frozen',
})

/**
 * Returns the terms of a mandate (a spending limit) with the given changes.
 * @param rules.start is the time from which the present mandate is valid. For a new mandate, it is `null`.
 * @throws {ApiError} 400 for invalid terms.
 */
function merged(
  present: MandateTerms,
  given: Given,
  { start, ...rules }: Rules & { start: Date | null },
): MandateTerms {
  const { limits } = present
  const terms: MandateTerms = {
    name: given.name ?? present.name,
    network: present.network,
    task: given.task === undefined ? present.task : given.task,
    hosts: given.hosts?.map(readHost) ?? present.hosts,
    resources: given.resources?.map((url) => readResource(url, rules)) ?? present.resources,
    payees: given.payees === undefined ? present.payees : (given.payees?.map(readPayee) ?? null),
    perPaymentAtomic: amount('maxPerPayment', given.maxPerPayment, present.perPaymentAtomic)!,
    limits: {
      hour: amount('maxPerHour', given.maxPerHour, limits.hour),
      day: amount('maxPerDay', given.maxPerDay, limits.day),
      month: amount('maxPerMonth', given.maxPerMonth, limits.month),
      total: amount('maxTotal', given.maxTotal, limits.total),
    },
    paymentsPerMinute: given.paymentsPerMinute ?? present.paymentsPerMinute,
    askAboveAtomic: amount('askAbove', given.askAbove, present.askAboveAtomic),
    risePercent: given.risePercent ?? present.risePercent,
    validFrom: readTime('validFrom', given.validFrom, present.validFrom),
    validUntil: readTime('validUntil', given.validUntil, present.validUntil),
  }
  const from = terms.validFrom ?? start
  const hasTimes = given.validFrom !== undefined || given.validUntil !== undefined
  // The times of a mandate that an earlier version of the service stored may be invalid. A change of other fields, such
  // as a stop of the mandate, must not fail because of them.
  if (hasTimes && terms.validUntil !== null && from !== null && terms.validUntil <= from) {
    throw badRequest('validUntil must be after validFrom')
  }
  if (terms.hosts.length + terms.resources.length === 0) {
    throw badRequest('hosts or resources must name a place: without one the mandate allows nothing')
  }
  if (Object.values(terms.limits).every((limit) => limit === null)) {
    throw badRequest('maxPerHour, maxPerDay, maxPerMonth or maxTotal must be there')
  }
  return terms
}

function amount(
  field: string,
  given: string | null | undefined,
  present: bigint | null,
): bigint | null {
  if (given === undefined) return present
  if (given === null) return null
  try {
    return parseUsdc(given)
  } catch (error) {
    throw badRequest(`${field}: ${(error as Error).message}`)
  }
}

function readTime(
  field: string,
  given: string | null | undefined,
  present: Date | null,
): Date | null {
  if (given === undefined) return present
  if (given === null) return null
  const at = parseIsoTime(given)
  if (at === null) throw badRequest(`${field} must ${TIME_RULE}`)
  return at
}

function readHost(text: string, n: number): string {
  const host = parseAllowedHost(text)
  if (host === null) throw badRequest(`hosts[${n}] must ${ALLOWED_HOST_RULE}`)
  return host
}

function readResource(text: string, { allowPrivate }: Rules): string {
  const fault = outboundUrlFault(text, allowPrivate)
  if (fault !== null)
    throw badRequest(`resources must hold URLs that the service may call: ${fault}`)
  const { search, hash } = new URL(text)
  if (search !== '' || hash !== '') throw badRequest('resources must have no query and no fragment')
  return normalUrl(text).url
}

function readPayee(text: string, n: number): string {
  if (/^0x[0-9a-fA-F]{40}$/.test(text)) return text.toLowerCase()
  throw badRequest(`payees[${n}] must be an address: 0x and 40 hexadecimal digits`)
}

const Nullable = t.Union([t.String(), t.Null()])

/** Describes a spending mandate with the sums that the project has paid so far. */
export const MandateSchema = t.Object({
  mandateId: t.String({ examples: ['man_0a1b2c3d4e5f60718293a4b5'] }),
  state: t.String({ enum: ['active', 'stopped', 'ended'] }),
  name: t.String(),
  task: Nullable,
  network: t.String(),
  hosts: t.Array(t.String()),
  resources: t.Array(t.String()),
  payees: t.Union([t.Array(t.String()), t.Null()]),
  maxPerPayment: t.String(),
  maxPerHour: Nullable,
  maxPerDay: Nullable,
  maxPerMonth: Nullable,
  maxTotal: Nullable,
  paymentsPerMinute: t.Integer(),
  askAbove: Nullable,
  risePercent: t.Integer(),
  validFrom: Time,
  validUntil: t.Union([Time, t.Null()]),
  reservedUsdc: t.String({
    description: 'This sum holds all payments that were ever signed: open, spent and released.',
  }),
  openUsdc: t.String(),
  spentUsdc: t.String(),
  releasedUsdc: t.String(),
  createdAt: Time,
})

export const EXAMPLE_MANDATE: Static<typeof MandateSchema> = {
  mandateId: 'man_0a1b2c3d4e5f60718293a4b5',
  state: 'active',
  name: 'Weather data',
  task: null,
  network: 'base',
  hosts: ['api.example.com'],
  resources: [],
  payees: null,
  maxPerPayment: '0.05',
  maxPerHour: null,
  maxPerDay: '2',
  maxPerMonth: '20',
  maxTotal: null,
  paymentsPerMinute: 60,
  askAbove: '0.02',
  risePercent: 20,
  validFrom: '2026-01-05T09:00:00.000Z',
  validUntil: null,
  reservedUsdc: '0.06',
  openUsdc: '0.01',
  spentUsdc: '0.04',
  releasedUsdc: '0.01',
  createdAt: '2026-01-05T09:00:00.000Z',
}

const usdc = (atomic: bigint | null): string | null => (atomic === null ? null : formatUsdc(atomic))

/** Returns a mandate in the form in which its owner sees it. */
export const toMandateView = (mandate: Mandate): Static<typeof MandateSchema> => ({
  mandateId: mandate.id,
  state: mandate.state === 'frozen' ? 'stopped' : mandate.state,
  name: mandate.name,
  task: mandate.task,
  network: mandate.network,
  hosts: [...mandate.hosts],
  resources: [...mandate.resources],
  payees: mandate.payees === null ? null : [...mandate.payees],
  maxPerPayment: formatUsdc(mandate.perPaymentAtomic),
  maxPerHour: usdc(mandate.limits.hour),
  maxPerDay: usdc(mandate.limits.day),
  maxPerMonth: usdc(mandate.limits.month),
  maxTotal: usdc(mandate.limits.total),
  paymentsPerMinute: mandate.paymentsPerMinute,
  askAbove: usdc(mandate.askAboveAtomic),
  risePercent: mandate.risePercent,
  validFrom: mandate.validFrom.toISOString(),
  validUntil: mandate.validUntil?.toISOString() ?? null,
  reservedUsdc: formatUsdc(mandate.reservedAtomic),
  openUsdc: formatUsdc(mandate.reservedAtomic - mandate.spentAtomic - mandate.releasedAtomic),
  spentUsdc: formatUsdc(mandate.spentAtomic),
  releasedUsdc: formatUsdc(mandate.releasedAtomic),
  createdAt: mandate.createdAt.toISOString(),
})
