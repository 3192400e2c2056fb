import { Type as t } from '@sinclair/typebox'
import { readIdempotencyKey } from '../../http/input/idempotencyKey.ts'
import {
  CalendarPage,
  CalendarQuery,
  readCalendarPage,
} from '../../mail/calendar/calendarRoutes.ts'
import { answerInvite, RsvpBody } from '../../mail/calendar/rsvp.ts'
import { RepliedMessage } from '../../mail/messages/messageDocs.ts'
import { MessageParams } from '../../mail/messages/messageRoutes.ts'
import { acceptedText, KeyInput, moreText, PageInput, SENDS } from './mailTools.ts'
import { defineTool, READS, STRICT, type Tool } from './tool.ts'
import { fence, UNTRUSTED, UntrustedMark } from './untrusted.ts'

const list = defineTool({
  name: 'calendar.list',
  title: 'List events',
  description:
    'Lists the events that this inbox organizes or has accepted, from a time to another, in order of their starts. By default it lists the next 366 days. Each instance of a series is an item. Use it before you accept or propose a time. Answers events, count, and nextPageToken if there are more. Example: {"from":"2026-03-02T00:00:00Z","to":"2026-03-09T00:00:00Z"}',
  scope: 'mail:read',
  input: t.Object(
    { from: CalendarQuery.properties.from, to: CalendarQuery.properties.to, ...PageInput },
    STRICT,
  ),
  output: t.Composite([CalendarPage, UntrustedMark]),
  hints: READS,
  async run({ services, projectId }, { limit, ...query }) {
    const page = await readCalendarPage(
      services.pool,
      { projectId },
      { ...query, ...(limit === undefined ? {} : { limit: String(limit) }) },
    )
    const lines = page.events.map(
      ({ start, end, summary, location, answer }) =>
        `${start.local} – ${end.local}${start.zone === null ? '' : ` ${start.zone}`} | ${summary} | ${location ?? ''} | ${answer}`,
    )
    return {
      data: { ...page, ...UNTRUSTED },
      text:
        page.count === 0
          ? 'No events.'
          : `${page.count} events.${moreText(page)}\n${fence(lines.join('\n'))}`,
    }
  },
})

const rsvp = defineTool({
  name: 'mail.rsvp',
  title: 'Answer an invitation',
  description:
    'Answers the invitation in a message: accepted, declined or tentative, with a comment if you like. The answer goes by mail to the organizer, and an accepted event then stands in calendar.list. mail.get_message shows the invites of a message: answer only those whose state is current. Never repeat a call that succeeded. Example: {"messageId":"<4f2a@mail.example.com>","answer":"accepted"}',
  scope: 'mail:send',
  input: t.Composite([MessageParams, RsvpBody, t.Object(KeyInput)], STRICT),
  output: RepliedMessage,
  hints: SENDS,
  fixes: {
    not_found: 'Take messageId, angle brackets included, from mail.list_messages.',
    conflict: 'Read the invites of the message again: only a current one can be answered.',
  },
  async run({ services, caller }, { idempotencyKey, ...input }) {
    const sent = await answerInvite(services, caller, input, {
      key: readIdempotencyKey(idempotencyKey),
      held: caller.holdsMail,
    })
    return { data: sent, text: acceptedText(sent) }
  },
})

/** Lists the MCP tools for calendar events. */
export const calendarTools: readonly Tool[] = [list, rsvp]
