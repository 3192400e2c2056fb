/** The short form: `bun run neighbours` measures the ratios. */
import { expect } from 'bun:test'
import { testWhole } from '../../support/extent.ts'
import { type Observation, observeNeighbours } from './neighbours.ts'

testWhole(
  'a tenant is served while its neighbour does its worst on each shared thing',
  async () => {
    const rows: Observation[] = []
    await observeNeighbours({
      size: { inbox: 10_000, flood: 12 },
      quietMs: 500,
      attackMs: 1_500,
      onRow: (row) => rows.push(row),
    })
    expect(rows.length).toBeGreaterThan(8)
    for (const { attack, failures, times } of rows) {
      expect([attack, failures]).toEqual([attack, []])
      for (const own of Object.values(times)) expect(own.length).toBeGreaterThan(0)
    }
  },
)
