import type { Ledger, Told } from '../audit/ledger.ts'
import type { Tally } from '../audit/tally.ts'
import type { Caller } from '../caller.ts'
import type { Pulses } from '../pulse.ts'
import type { Random } from '../random.ts'

/** Describes a project with its inbox and its API key. */
export type Project = { inbox: string; key: string; call: Caller }

/** Holds the addresses, records and signals that all clients of a chaos run share. */
export type Load = {
  ledger: Ledger
  tally: Tally
  pulses: Pulses
  seller: Project
  peer: Project
  /** Holds the URL of the resource that the seller sells through this service. */
  resource: string
  /** Holds the URL at which another seller sells, who settles payments without this service. */
  paidResource: string
  apiUrl: string
  /** Holds the port of the proxy through which clients reach the SMTP listener. */
  smtpPort: number
  /** Holds the time at which the load began, in the time format of the API. */
  beganAt: string
  /** Aborts when clients must not begin another operation. */
  ending: AbortSignal
  /** Aborts when clients must stop repeating operations. */
  givenUp: AbortSignal
}

const PAUSE_MIN_MS = 80
const PAUSE_MAX_MS = 500

/**
 * Repeats an operation of a client until the client knows the outcome, or until the harness tells all clients to give
 * up.
 */
export async function untilDecided(
  { givenUp }: Load,
  random: Random,
  attempt: () => Promise<Told>,
): Promise<Told> {
  for (;;) {
    const told = await attempt()
    if (told !== 'unknown' || givenUp.aborted) return told
    await pace(random, givenUp, PAUSE_MIN_MS, PAUSE_MAX_MS)
  }
}

/** Runs the actions of a client one round after another, until the load of the chaos run ends. */
export async function rounds(
  load: Load,
  random: Random,
  [minMs, maxMs]: readonly [number, number],
  round: (n: number) => Promise<void>,
): Promise<void> {
  for (let n = 1; !load.ending.aborted; n++) {
    await round(n)
    await pace(random, load.ending, minMs, maxMs)
  }
}

/** Makes a client pause for a random time. The pause ends early if the signal is aborted. */
function pace(random: Random, signal: AbortSignal, minMs: number, maxMs: number): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, random.int(minMs, maxMs))
    signal.addEventListener('abort', done)
  })
}
