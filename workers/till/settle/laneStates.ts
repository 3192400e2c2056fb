/** The states of a process's settlement lanes, as tables. ARCHITECTURE.md draws them, and a test compares. */

/** A look takes the payments that wait. One runs at a time. */
export type LookState = 'idle' | 'looking' | 'looking again'
type LookEvent = 'asked' | 'looked'

/** `looking again`: something came during the look, so that another look follows. */
export const LOOK_STATES: Record<LookState, Record<LookEvent, LookState>> = {
  idle: { asked: 'looking', looked: 'idle' },
  looking: { asked: 'looking again', looked: 'idle' },
  'looking again': { asked: 'looking again', looked: 'looking' },
}

/** Groups that are tried and sent at the same time. */
export type GroupState = 'free' | 'one group' | 'two groups'
type GroupEvent = 'begun' | 'ended'

/** The second group begins when the first is late. A third waits for an end. */
export const GROUP_STATES: Record<GroupState, Partial<Record<GroupEvent, GroupState>>> = {
  free: { begun: 'one group' },
  'one group': { begun: 'two groups', ended: 'free' },
  'two groups': { ended: 'one group' },
}

/** The state behind an event. @throws {Error} the table has no such event: a bug */
export function after<State extends string, Event extends string>(
  states: Record<State, Partial<Record<Event, State>>>,
  state: State,
  event: Event,
): State {
  const next = states[state][event]
  if (next === undefined) throw new Error(`${event} in the state ${state}`)
  return next
}
