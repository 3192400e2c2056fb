import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** An instance of an event. */
export type CalendarEvent = Operations['getCalendar']['result']['events'][number]

type Given = NonNullable<Operations['getCalendar']['input']['query']>
/** `from` and `to`: ISO 8601, at most 366 days apart. */
type CalendarQuery = Pick<Given, 'limit' | 'pageToken'> & { from: string; to: string }

/**
 * The events that the project organizes or has accepted. `messages.send` with `event` announces one, `rsvp` answers one.
 *
 * @example
 * const { events } = await purser.calendar.list({ from: '2026-03-02', to: '2026-03-09' })
 * await purser.calendar.rsvp('<4f2a@mail.example.com>', { answer: 'accepted' })
 */
export function calendar(http: Http) {
  /** One page, in order of the starts. */
  const list = (query: CalendarQuery, options?: CallOptions) =>
    http.call('getCalendar', { query }, options)
  return {
    list,
    /** Every event of a time; iteration loads the pages. */
    all: (query: CalendarQuery, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.events,
        query.pageToken,
      ),
    /** Answers the invitation in a message. After a lost answer the client retries only with an idempotencyKey. */
    rsvp: (
      messageId: string,
      answer: Operations['postMessagesByMessageIdRsvp']['input']['body'],
      options?: CallOptions,
    ) => http.call('postMessagesByMessageIdRsvp', { path: { messageId }, body: answer }, options),
  }
}
