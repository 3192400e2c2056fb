import { test } from 'bun:test'

/**
 * Tells whether the whole test suite runs (`npm run test:all`). `npm test` runs only some tests of each long family of
 * similar tests.
 */
export const isWhole = process.env.TEST_WHOLE === '1'

/** Returns all cases of a long family of tests if the whole suite runs, and otherwise only the first cases. */
export const some = <Case>(cases: readonly Case[], representatives = 1): readonly Case[] =>
  isWhole ? cases : cases.slice(0, representatives)

/** Returns the number of test cases: `whole` if the whole suite runs, and `short` if `npm test` runs. */
export const amount = (whole: number, short: number): number => (isWhole ? whole : short)

/** Declares a long test that `npm test` omits, because `npm test` runs another test of the same family instead. */
export const testWhole: Pick<typeof test, 'skipIf'> &
  ((...given: Parameters<typeof test>) => void) = Object.assign(
  (...given: Parameters<typeof test>) => void (isWhole && test(...given)),
  {
    skipIf: (isSkipped: boolean) =>
      isWhole ? test.skipIf(isSkipped) : ((() => {}) as unknown as typeof test),
  },
)
