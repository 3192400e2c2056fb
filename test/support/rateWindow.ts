import { waitFor } from './waitFor.ts'

/**
 * Waits until at least 15 seconds of the current minute are left. A test that counts requests must stay within one rate
 * limit window, which lasts a minute.
 */
export const withinOneMinute = (): Promise<unknown> =>
  waitFor('the minute to be young enough', () => Date.now() % 60_000 < 45_000)
