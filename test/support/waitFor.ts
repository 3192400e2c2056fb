import { lastWarnings } from './logs.ts'

/**
 * Sets the maximum pause in milliseconds between two calls of `probe`. Each call takes processor time from the work for
 * which the test waits.
 */
const PAUSE_MS = 5
const PAUSE_MAX_MS = 80

/** Waits until `probe` returns a value other than undefined, null or false. @returns the value */
export async function waitFor<Result>(
  wanted: string,
  probe: () => Promise<Result> | Result,
  timeoutMs = 60_000,
): Promise<NonNullable<Exclude<Result, false>>> {
  const deadline = Date.now() + timeoutMs
  for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 1.3, PAUSE_MAX_MS)) {
    const result = await probe()
    if (result !== undefined && result !== null && result !== false) {
      return result as NonNullable<Exclude<Result, false>>
    }
    if (Date.now() > deadline) {
      throw new Error(`waited ${timeoutMs} ms in vain for: ${wanted}\n${lastWarnings()}`)
    }
    await Bun.sleep(pauseMs)
  }
}
