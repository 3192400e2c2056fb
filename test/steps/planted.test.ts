/** Tests that the measurement finds each kind of example reader whose work is not linear. */
import { expect, test } from 'bun:test'
import { measureTable } from './measureTable.ts'

test('the measurement finds every example parser whose work grows faster than linearly, with inputs of at most 1,000 characters', async () => {
  const effort = { first: 250, last: 1_000, draws: 0, seed: 1, stepsMax: 1e9 }
  const { growths, differences } = await measureTable('planted.ts', 'PLANTED', effort)
  const missed = growths.filter(({ isLinear }) => isLinear).map(({ reader }) => reader)
  expect(missed).toEqual([])
  expect(growths.length).toBeGreaterThan(10)
  expect(differences).toEqual([])
})

test('the measurement accepts example parsers with linear work, even if they call costly built-in functions', async () => {
  const effort = { first: 500, last: 4_000, draws: 20, seed: 1, stepsMax: 1e9 }
  const { growths } = await measureTable('planted.ts', 'LINEAR', effort)
  expect(growths.filter(({ isLinear }) => !isLinear)).toEqual([])
})
