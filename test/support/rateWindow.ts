import { waitFor } from './waitFor.ts'

/** A window is a minute of the clock: a test that counts must not straddle two. */
export const withinOneMinute = (): Promise<unknown> =>
  waitFor('the minute to be young enough', () => Date.now() % 60_000 < 45_000)
