import { type Static, Type as t } from '@sinclair/typebox'
import { isDay } from '../../../shared/isoTime.ts'
import {
  parseField,
  parseSearch,
  type SearchQuery,
  SearchQueryError,
} from '../../../shared/mail/search/searchQuery.ts'
import { DELIVERY_STATUSES, type DeliveryStatus } from '../../../sql/mail/messages/messages.ts'
import { badRequest } from '../../http/errors.ts'
import { LabelsQuery, readLabels } from './labels.ts'

const QUERY_MAX_LENGTH = 500

const Search = (description: string, example: string) =>
  t.String({ maxLength: QUERY_MAX_LENGTH, description, examples: [example] })
const Instant = (description: string) =>
  t.String({ maxLength: 40, description, examples: ['2026-01-31T09:30:00Z', '2026-01-31'] })

/** Describes the filters of a message list. */
export const MessageFilterQuery = t.Object({
  labels: t.Optional(LabelsQuery),
  q: t.Optional(
    Search(
      'Words; the message must contain all of them (subject, addresses, text, file names). Any script; case and accents ' +
        'are ignored. Syntax: "a phrase", -without, one OR other, begin* (three letters at least).',
      'invoice "second reminder" -draft',
    ),
  ),
  from: t.Optional(Search('The text must occur in the address of the sender.', 'ada@example.com')),
  to: t.Optional(
    Search('The text must occur in the address of a recipient (To, Cc or Bcc).', 'example.com'),
  ),
  subject: t.Optional(
    Search('These words must follow each other in the subject.', 'second reminder'),
  ),
  after: t.Optional(
    Instant('The list holds only entries that were created at this ISO 8601 time or later.'),
  ),
  before: t.Optional(
    Instant('The list holds only entries that were created before this ISO 8601 time.'),
  ),
  deliveryStatus: t.Optional(
    t.Union(
      DELIVERY_STATUSES.map((status) => t.Literal(status)),
      { description: 'The list holds only sent messages in this state of delivery.' },
    ),
  ),
})

export type MessageFilter = {
  labels: string[]
  /** Holds the search queries of a message list. A message must match all of them. */
  queries: SearchQuery[]
  after: Date | null
  before: Date | null
  deliveryStatus?: DeliveryStatus | null
}

/** Reads the filters of a message list. @throws {ApiError} 400 for an invalid filter. */
export function readMessageFilter(query: Static<typeof MessageFilterQuery>): MessageFilter {
  const queries = [
    readSearch('q', query.q, parseSearch),
    ...(['from', 'to', 'subject'] as const).map((field) =>
      readSearch(field, query[field], (text) => parseField(field, text)),
    ),
  ]
  return {
    labels: readLabels(query.labels),
    queries: queries.flatMap((one) => one ?? []),
    after: readInstant('after', query.after),
    before: readInstant('before', query.before),
    deliveryStatus: query.deliveryStatus ?? null,
  }
}

function readSearch(
  name: string,
  text: string | undefined,
  parse: (text: string) => SearchQuery,
): SearchQuery | null {
  if (text === undefined) return null
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof SearchQueryError)) throw error
    throw badRequest(`${name} must ${error.message}`)
  }
}

/**
 * Matches a time in the format of RFC 3339, or a date alone. A date without a time means the first moment of the day in
 * UTC.
 */
const INSTANT =
  /^(\d{4}-\d\d-\d\d)(T(?:[01]\d|2[0-3]):\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/i

function readInstant(name: string, text: string | undefined): Date | null {
  if (text === undefined) return null
  const [, day = ''] = INSTANT.exec(text) ?? []
  const instant = new Date(isDay(day) ? text : Number.NaN)
  if (!Number.isNaN(instant.getTime())) return instant
  throw badRequest(`${name} must be an ISO 8601 time such as 2026-01-31T09:30:00Z, or a date`)
}
