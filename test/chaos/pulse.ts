/** The parts of the service whose silence is measured. */
const PULSES = ['api', 'smtp', 'mail in', 'mail out', 'redeem', 'webhooks', 'events'] as const
export type Pulse = (typeof PULSES)[number]

/** Measures the longest time without a success of each part. */
export type Pulses = {
  beat(part: Pulse): void
  /** Ends the measurement. */
  end(): void
  /** In milliseconds, by part. */
  longest(): Record<Pulse, number>
}

/** Begins the measurement. */
export function startPulses(now: () => number = () => performance.now()): Pulses {
  const beginMs = now()
  const last = new Map<Pulse, number>(PULSES.map((part) => [part, beginMs]))
  const longest = new Map<Pulse, number>(PULSES.map((part) => [part, 0]))
  let ended = false
  const beat = (part: Pulse) => {
    if (ended) return
    const atMs = now()
    longest.set(part, Math.max(longest.get(part)!, atMs - last.get(part)!))
    last.set(part, atMs)
  }
  return {
    beat,
    end() {
      for (const part of PULSES) beat(part)
      ended = true
    },
    longest: () => Object.fromEntries(longest) as Record<Pulse, number>,
  }
}
