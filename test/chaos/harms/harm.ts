import { createRandom, type Random } from '../random.ts'
import type { Setting } from '../setting.ts'
import type { Harms } from './harms.ts'

/** Sets the number of loops that inject faults at the same time. */
const LANES = 2
const PAUSE_MIN_MS = 300
const PAUSE_MAX_MS = 3_500
/**
 * Sets the fraction of planned power cuts that the harness leaves out, because a power cut hides the effects of other
 * faults.
 */
const RARE = 0.6

export type Harming = {
  /** Maps each kind of fault to the number of its injections so far. */
  counts: Map<string, number>
  /** Resolves when the effect of the last injected fault is over. */
  ended: Promise<void>
}

/** Injects the given faults into the service until the signal is aborted. The seed decides their order. */
export function startHarm(
  setting: Setting,
  options: {
    seed: number
    harms: Harms
    ending: AbortSignal
    onHarm: (line: string) => void
  },
): Harming {
  const { seed, harms, ending, onHarm } = options
  const kinds = Object.keys(harms)
  const counts = new Map<string, number>()
  const busy = new Set<string>()
  const lane = async (random: Random) => {
    for (;;) {
      await Bun.sleep(random.int(PAUSE_MIN_MS, PAUSE_MAX_MS))
      if (ending.aborted) return
      const kind = random.pick(kinds)
      if (busy.has(kind) || (kind === 'power' && kinds.length > 1 && random.chance(RARE))) continue
      busy.add(kind)
      try {
        onHarm(await harms[kind]!(setting, random))
        counts.set(kind, (counts.get(kind) ?? 0) + 1)
      } catch (error) {
        // Two loops inject faults at the same time, so the other loop may already have killed the process that this
        // fault concerns.
        onHarm(`${kind} could not be harmed: ${(error as Error).message}`)
      } finally {
        busy.delete(kind)
      }
    }
  }
  const lanes = Array.from({ length: kinds.length === 0 ? 0 : LANES }, (_, n) =>
    lane(createRandom(seed, `harm ${n}`)),
  )
  return { counts, ended: Promise.all(lanes).then(() => {}) }
}
