import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { Gauge, type Registry } from 'prom-client'

const RESOLUTION_MS = 20
/**
 * Sets the length in milliseconds of a time window for the event loop's delay. The metric shows the longest delay of
 * the current and the previous window. Therefore a scraper that reads the metric once in each window misses no delay.
 */
const WINDOW_MS = 10_000

/** Measures the delay of the event loop in this process. */
export class EventLoopDelay {
  readonly #histogram: IntervalHistogram
  readonly #nowMs: () => number
  #beganMs: number
  #beforeMs = 0

  constructor(
    histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS }),
    nowMs = () => performance.now(),
  ) {
    this.#histogram = histogram
    this.#nowMs = nowMs
    this.#beganMs = nowMs()
    histogram.enable()
  }

  /** Returns the longest delay of the event loop in the last ten to twenty seconds, in milliseconds. */
  longestMs(): number {
    // Before its first sample, the histogram gives NaN or 0 as its maximum.
    const ms = this.#histogram.max / 1e6 || 0
    const windows = Math.floor((this.#nowMs() - this.#beganMs) / WINDOW_MS)
    if (windows === 0) return Math.max(ms, this.#beforeMs)
    // If more than one time window has passed since the last reading, nobody read the metric, or the event loop was
    // blocked. The histogram then covers all of these windows, so the delay of the previous window is not needed.
    const longest = Math.max(ms, windows === 1 ? this.#beforeMs : 0)
    this.#beforeMs = ms
    this.#beganMs = this.#nowMs()
    this.#histogram.reset()
    return longest
  }
}

/** Publishes the delay of this process's event loop as a metric. */
export function measureEventLoop(registry: Registry, delay = new EventLoopDelay()): EventLoopDelay {
  new Gauge({
    name: 'purser_event_loop_delay_seconds',
    help: 'Longest time of the last ten seconds in which the event loop stood still',
    registers: [registry],
    collect() {
      this.set(delay.longestMs() / 1000)
    },
  })
  return delay
}
