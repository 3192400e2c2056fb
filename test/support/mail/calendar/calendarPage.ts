/** Reads the calendar of an agent over the API, for the year 2030 in which the events of tests take place. */
import type { Agent } from '../../service.ts'
import { waitFor } from '../../waitFor.ts'

export const YEAR_2030 = '/v0/calendar?from=2030-03-01&to=2030-12-31'

/** Returns the events on the first page of an agent's calendar. */
export const calendarOf = async (agent: Agent): Promise<any[]> =>
  (await agent.get(YEAR_2030)).body.events

/** Waits until the events of an agent's calendar meet a condition. */
export const untilCalendar = (agent: Agent, wanted: string, fits: (events: any[]) => boolean) =>
  waitFor(wanted, async () => {
    const events = await calendarOf(agent)
    return fits(events) ? events : undefined
  })
