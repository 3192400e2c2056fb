import { test } from 'bun:test'

/** Whether the whole suite runs (`npm run test:all`). `npm test` has a representative of each long family. */
export const isWhole = process.env.TEST_WHOLE === '1'

/** All cases of a long family in the whole suite, else its first ones. */
export const some = <Case>(cases: readonly Case[], representatives = 1): readonly Case[] =>
  isWhole ? cases : cases.slice(0, representatives)

/** A number of cases: the first for the whole suite, the second for `npm test`. */
export const amount = (whole: number, short: number): number => (isWhole ? whole : short)

/** A long test beside a representative of its family: it is no part of `npm test`. */
export const testWhole: Pick<typeof test, 'skipIf'> &
  ((...given: Parameters<typeof test>) => void) = Object.assign(
  (...given: Parameters<typeof test>) => void (isWhole && test(...given)),
  {
    skipIf: (isSkipped: boolean) =>
      isWhole ? test.skipIf(isSkipped) : ((() => {}) as unknown as typeof test),
  },
)
