import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes one instance of a calendar event. */
export type CalendarEvent = Operations['getCalendar']['result']['events'][number]

/**
 * Selects a period of the calendar. The fields `from` and `to` are ISO 8601 times, at most 366 days apart. By default
 * the period begins now and has 366 days.
 */
type CalendarQuery = Operations['getCalendar']['input']['query']

/**
 * Reads the events that the project organizes or has accepted. Call `messages.send` with `event` to announce an event.
 * Call `rsvp` to answer an invitation.
 *
 * @example
 * const { events } = await purser.calendar.list({ from: '2026-03-02', to: '2026-03-09' })
 * await purser.calendar.rsvp('<4f2a@mail.example.com>', { answer: 'accepted' })
 */
export function calendar(http: Http) {
  /** Returns one page of calendar events in the order of their start times. */
  const list = (query: CalendarQuery = {}, options?: CallOptions) =>
    http.call('getCalendar', { query }, options)
  return {
    list,
    /**
     * Iterates over every calendar event of a period. The client loads a page of events only when the iteration reaches
     * it.
     */
    all: (query: CalendarQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.events,
        query.pageToken,
      ),
    /**
     * Answers the calendar invitation in a message. If the service's response is lost, the client repeats the call only
     * if the caller gave an `idempotencyKey`.
     */
    rsvp: (
      messageId: string,
      answer: Operations['postMessagesByMessageIdRsvp']['input']['body'],
      options?: CallOptions,
    ) => http.call('postMessagesByMessageIdRsvp', { path: { messageId }, body: answer }, options),
  }
}
