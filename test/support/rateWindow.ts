import { waitFor } from './waitFor.ts'

/** Waits until 15 seconds of the minute are left. A rate window is a minute, and a counting test needs one window. */
export const withinOneMinute = (): Promise<unknown> =>
  waitFor('the minute to be young enough', () => Date.now() % 60_000 < 45_000)
