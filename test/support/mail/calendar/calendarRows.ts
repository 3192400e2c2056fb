/** Stores calendar events in a test database. */
import { randomBytes } from 'node:crypto'
import type { Pool } from '../../../../sql/db.ts'

/**
 * Lists the columns of a calendar event that a test can set. By default, the event is an accepted event of a stranger.
 */
export type EventColumns = {
  uid_hash?: Buffer
  organizer?: string
  instance?: string
  is_own?: boolean
  status?: string
  answer?: string
  invite?: object
  source?: string | null
  expand_at?: Date | null
  message_row?: string | null
}

/** Stores a calendar event that the project has accepted. @returns the row number of the event. */
export async function newEvent(
  pool: Pool,
  projectId: string,
  changes: EventColumns = {},
): Promise<string> {
  const columns = {
    project_id: projectId,
    uid_hash: randomBytes(32),
    organizer: 'owner@corp.example',
    sequence: 0,
    stamp: new Date(),
    is_proven: true,
    is_own: false,
    status: 'confirmed',
    answer: 'accepted',
    invite: { ...spanOf('2031-03-02T09:00:00', '2031-03-02T10:00:00'), attendees: [] },
    ...changes,
  }
  const names = Object.keys(columns)
  const { rows } = await pool.query<{ row: string }>(
    `insert into calendar_events (${names}) values (${names.map((_, n) => `$${n + 1}`)}) returning row`,
    Object.values(columns),
  )
  return rows[0]!.row
}

/** Returns the part of an invitation that states the start and the end of its event, in UTC. */
export const spanOf = (start: string, end: string) => ({
  start: { at: `${start}.000Z`, local: start, zone: 'UTC' },
  end: { at: `${end}.000Z`, local: end, zone: 'UTC' },
})

/** Stores an instance of a calendar event, from one hour of 2 March 2031 to another, in UTC. */
export async function newInstance(
  pool: Pool,
  projectId: string,
  eventRow: string,
  [start, end]: readonly [start: number, end: number],
): Promise<void> {
  await pool.query(
    `insert into calendar_instances (event_row, project_id, starts_at, ends_at, local) values ($1, $2, $3, $4, $5)`,
    [eventRow, projectId, hourAt(start), hourAt(end), `hour ${start}`],
  )
}

/** Returns the start of the given hour on 2 March 2031 in UTC. */
export const hourAt = (hour: number) => new Date(Date.UTC(2031, 2, 2, hour))
