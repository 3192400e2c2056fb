import { test } from 'bun:test'

/**
 * Tells whether the whole test suite runs (`npm run test:all`). `npm test` runs a representative of each long family of
 * tests.
 */
export const isWhole = process.env.TEST_WHOLE === '1'

/** Returns all cases of a long family of tests in the whole suite, and otherwise the first cases. */
export const some = <Case>(cases: readonly Case[], representatives = 1): readonly Case[] =>
  isWhole ? cases : cases.slice(0, representatives)

/** Returns a number of test cases: `whole` for the whole suite, `short` for `npm test`. */
export const amount = (whole: number, short: number): number => (isWhole ? whole : short)

/** Declares a long test that `npm test` omits. A representative of its family of tests is in `npm test`. */
export const testWhole: Pick<typeof test, 'skipIf'> &
  ((...given: Parameters<typeof test>) => void) = Object.assign(
  (...given: Parameters<typeof test>) => void (isWhole && test(...given)),
  {
    skipIf: (isSkipped: boolean) =>
      isWhole ? test.skipIf(isSkipped) : ((() => {}) as unknown as typeof test),
  },
)
