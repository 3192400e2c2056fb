/**
 * Tests that every function that reads untrusted text takes steps in proportion to its input. The inputs are repeats,
 * near-matches, nests and mixes of the tokens of a grammar. The number of steps is the same on every machine.
 */
import { expect, test } from 'bun:test'
import { amount } from '../../support/database/extent.ts'
import { measureTable } from '../measureTable.ts'
import '../../support/long.ts'

test(
  'a parser takes about twice as many steps for an input of twice the length',
  async () => {
    const effort = {
      first: amount(1_000, 500),
      last: amount(8_000, 2_000),
      draws: amount(40, 10),
      seed: 1,
      stepsMax: amount(4e6, 2e5),
    }
    const { growths, differences } = await measureTable('readers/readers.ts', 'READERS', effort)
    expect(growths.filter(({ isLinear }) => !isLinear)).toEqual([])
    expect(differences).toEqual([])
  },
  amount(1_800_000, 600_000),
)
