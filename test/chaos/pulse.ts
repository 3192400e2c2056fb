/** Lists the parts of the service for which the harness measures silence (the time without a success). */
const PULSES = ['api', 'smtp', 'mail in', 'mail out', 'redeem', 'webhooks', 'events'] as const
export type Pulse = (typeof PULSES)[number]

/** Measures for each part of the service the longest time without a success. */
export type Pulses = {
  beat(part: Pulse): void
  /** Ends the measurement of silences. Later successes of a service part change nothing in the result. */
  end(): void
  longest(): Record<Pulse, Silence>
}

/**
 * Describes a silence (a period without a success) of a part of the service. `fromMs` is the time from the start of the
 * measurement to the start of the silence.
 */
export type Silence = { ms: number; fromMs: number }

/** Begins to measure the silences (periods without a success) of every part of the service. */
export function startPulses(now: () => number = () => performance.now()): Pulses {
  const beginMs = now()
  const last = new Map<Pulse, number>(PULSES.map((part) => [part, beginMs]))
  const longest = new Map<Pulse, Silence>(PULSES.map((part) => [part, { ms: 0, fromMs: 0 }]))
  let ended = false
  const beat = (part: Pulse) => {
    if (ended) return
    const atMs = now()
    const lastMs = last.get(part)!
    const ms = atMs - lastMs
    if (ms > longest.get(part)!.ms) longest.set(part, { ms, fromMs: lastMs - beginMs })
    last.set(part, atMs)
  }
  return {
    beat,
    end() {
      for (const part of PULSES) beat(part)
      ended = true
    },
    longest: () => Object.fromEntries(longest) as Record<Pulse, Silence>,
  }
}
