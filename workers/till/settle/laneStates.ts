/**
 * Defines as tables the states of the settlement of payments in a process. A diagram in ARCHITECTURE.md shows the same
 * states, and a test compares the tables with the diagram.
 */

/**
 * Names the states of a look. In a look, the settler (the worker that settles payments) reads the waiting payments from
 * the database. Only one look runs at a time.
 */
export type LookState = 'idle' | 'looking' | 'looking again'
type LookEvent = 'asked' | 'looked'

/**
 * Defines how the state of a look (one read of the waiting payments) changes. The state `looking again` means that a
 * payment arrived during the look, so a second look follows.
 */
export const LOOK_STATES: Record<LookState, Record<LookEvent, LookState>> = {
  idle: { asked: 'looking', looked: 'idle' },
  looking: { asked: 'looking again', looked: 'idle' },
  'looking again': { asked: 'looking again', looked: 'looking' },
}

/** Names the states that tell how many groups of payments are simulated and sent at the same time. */
export type GroupState = 'free' | 'one group' | 'two groups'
type GroupEvent = 'begun' | 'ended'

/**
 * Defines how many groups of payments may be in progress at once. If the first group takes too long, a second group of
 * payments begins. A third group of payments waits until a running group ends.
 */
export const GROUP_STATES: Record<GroupState, Partial<Record<GroupEvent, GroupState>>> = {
  free: { begun: 'one group' },
  'one group': { begun: 'two groups', ended: 'free' },
  'two groups': { ended: 'one group' },
}

/**
 * Returns the state that follows the given state after an event.
 * @throws {Error} if the table has no such event for the given state, which would be a bug of the service
 */
export function after<State extends string, Event extends string>(
  states: Record<State, Partial<Record<Event, State>>>,
  state: State,
  event: Event,
): State {
  const next = states[state][event]
  if (next === undefined) throw new Error(`${event} in the state ${state}`)
  return next
}
