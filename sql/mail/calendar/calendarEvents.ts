import { addressKey } from '../../../shared/mail/address.ts'
import type { AttendeeState, Invite, Status } from '../../../shared/mail/calendar/invite.ts'
import type { Queryable } from '../../db.ts'
import { uidHash } from './uidHash.ts'

/** Describes the state of the calendar event to which an invite belongs. */
export type EventState = {
  sequence: number
  stamp: Date
  status: Status
  answer: AttendeeState
  /** Holds the id of the message that announced the calendar event. Null means that this message is deleted. */
  messageId: string | null
}

/**
 * Finds the event of each invite in the project's calendar, in the order of the invites. Null means that the calendar
 * does not have the event.
 */
export async function findEventStates(
  db: Queryable,
  projectId: string,
  invites: readonly Invite[],
): Promise<(EventState | null)[]> {
  if (invites.length === 0) return []
  const { rows } = await db.query<EventState & { n: number }>({
    name: 'find-event-states',
    text: `
      select w.n::int, e.sequence, e.stamp, e.status, e.answer, m.message_id as "messageId"
      from unnest($2::bytea[], $3::text[], $4::timestamptz[]) with ordinality as w (uid_hash, organizer, instance, n)
      join calendar_events e on e.project_id = $1 and e.uid_hash = w.uid_hash and e.organizer = w.organizer
        and e.instance = w.instance
      left join messages m on m.row = e.message_row`,
    values: [
      projectId,
      invites.map(({ uid }) => uidHash(uid)),
      invites.map(({ organizer }) => (organizer === null ? '' : addressKey(organizer.address))),
      invites.map(({ recurrenceId }) => recurrenceId ?? '-infinity'),
    ],
  })
  const found = new Map(rows.map(({ n, ...state }) => [n, state]))
  return invites.map((_, at) => found.get(at + 1) ?? null)
}

/** Describes one instance of a calendar event. */
export type CalendarItem = {
  eventRow: string
  invite: Invite
  isOwn: boolean
  answer: AttendeeState
  startsAt: Date
  endsAt: Date
  local: string
  messageId: string | null
  /** Lists the answers of the calendar event's present attendees if this project organizes the event. */
  answers: Answer[]
}

/**
 * Describes an attendee's answer to a calendar invitation. The attendee's address has the form that `addressKey`
 * returns.
 */
type Answer = { address: string; state: AttendeeState }

export type CalendarPage = {
  projectId: string
  from: Date
  to: Date
  /**
   * Holds the position after which the page of instances begins. Null means that the page begins at the start of the
   * list.
   */
  after: { startsAt: Date; eventRow: string } | null
  limit: number
}

/**
 * Lists instances of calendar events that overlap the time from `from` to `to`, in the order of their starts. A changed
 * instance of a series replaces the original instance.
 */
export async function listCalendar(
  db: Queryable,
  { projectId, from, to, after, limit }: CalendarPage,
): Promise<CalendarItem[]> {
  // The query reads the calendar invitation of a series only once, because it may have hundreds of kilobytes.
  const { rows } = await db.query<Omit<CalendarItem, 'answers' | 'invite'> & Shared>({
    name: 'list-calendar',
    text: `
      with page as (
        select e.row as event_row, i.starts_at, i.ends_at, i.local
        from calendar_instances i
        join calendar_events e on e.row = i.event_row
        where i.project_id = $1 and i.ends_at >= $2 and i.starts_at < $3 and (i.ends_at > $2 or i.starts_at >= $2)
          and (i.starts_at, i.event_row) > ($4::timestamptz, $5::bigint)
          and (e.instance > '-infinity' or not exists (
            select from calendar_events o
            where o.project_id = e.project_id and o.uid_hash = e.uid_hash and o.organizer = e.organizer
              and o.instance = i.starts_at))
        order by i.starts_at, i.event_row limit $6
      )
      select p.event_row as "eventRow", e.is_own as "isOwn", e.answer, p.starts_at as "startsAt", p.ends_at as "endsAt",
        p.local, m.message_id as "messageId",
        case when row_number() over (partition by p.event_row order by p.starts_at) = 1 then e.invite end as invite
      from page p
      join calendar_events e on e.row = p.event_row
      left join messages m on m.row = e.message_row
      order by p.starts_at, p.event_row`,
    values: [projectId, from, to, after?.startsAt ?? '-infinity', after?.eventRow ?? 0, limit],
  })
  const invites = new Map(
    rows.flatMap(({ eventRow, invite }) => (invite === null ? [] : [[eventRow, invite]])),
  )
  const items = rows.map((row) => ({ ...row, invite: invites.get(row.eventRow)! }))
  const answers = await findAnswers(
    db,
    items.filter(({ isOwn }) => isOwn),
  )
  return items.map((item) => ({ ...item, answers: answers.get(item) ?? [] }))
}

/**
 * Holds the invite with the first instance of its event on a page of calendar events. For further instances, the field
 * is null.
 */
type Shared = { invite: Invite | null }
type Instance = Pick<CalendarItem, 'eventRow' | 'invite' | 'startsAt'>

/**
 * Finds the present attendees' answers to instances of calendar events. An answer to a single instance takes precedence
 * over an answer to the whole series. An answer to the series does not count for an instance that has another time. The
 * query returns neither comments nor answers of removed attendees. If it returned them, one page of a hostile series
 * would have 150 MB.
 */
async function findAnswers<Item extends Instance>(
  db: Queryable,
  items: readonly Item[],
): Promise<Map<Item, Answer[]>> {
  const events = [...new Map(items.map((item) => [item.eventRow, item.invite.attendees]))]
  const asked = events.flatMap(([eventRow, attendees]) =>
    attendees.map(({ address }) => ({ eventRow, address: addressKey(address) })),
  )
  if (asked.length === 0) return new Map()
  const { rows } = await db.query<{ item: number; asked: number[]; states: AttendeeState[] }>({
    name: 'find-answers',
    text: `
      select i.n::int - 1 as item, array_agg(w.n::int - 1 order by w.n) as asked, array_agg(a.state order by w.n) as states
      from unnest($1::bigint[], $2::timestamptz[]) with ordinality i (event_row, starts_at, n)
      join unnest($3::bigint[], $4::text[]) with ordinality w (event_row, address, n) on w.event_row = i.event_row
      join calendar_events e on e.row = i.event_row
      left join calendar_events s on e.instance > '-infinity' and s.project_id = e.project_id
        and s.uid_hash = e.uid_hash and s.organizer = e.organizer and s.instance = '-infinity'
      cross join lateral (
        select state from calendar_answers
        where event_row in (e.row, s.row) and address = w.address and instance in (
          case when e.instance in ('-infinity', i.starts_at) then '-infinity'::timestamptz end,
          case when e.instance = '-infinity' then i.starts_at else e.instance end)
        order by instance desc, stamp desc limit 1) a
      group by i.n`,
    values: [
      items.map(({ eventRow }) => eventRow),
      items.map(({ startsAt }) => startsAt),
      asked.map(({ eventRow }) => eventRow),
      asked.map(({ address }) => address),
    ],
  })
  return new Map(
    rows.map((row) => [
      items[row.item]!,
      row.asked.map((at, n) => ({ address: asked[at]!.address, state: row.states[n]! })),
    ]),
  )
}
