/** Lists the parts of the service whose silence is measured. */
const PULSES = ['api', 'smtp', 'mail in', 'mail out', 'redeem', 'webhooks', 'events'] as const
export type Pulse = (typeof PULSES)[number]

/** Measures the longest time without a success of each part. */
export type Pulses = {
  beat(part: Pulse): void
  /** Ends the measurement. */
  end(): void
  longest(): Record<Pulse, Silence>
}

/**
 * Is a period without a sign of life. `fromMs` is the time from the start of the measurement to the begin of the
 * period.
 */
export type Silence = { ms: number; fromMs: number }

/** Begins the measurement. */
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
