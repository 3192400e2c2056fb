/**
 * Measures for a short time how the load of other projects affects one project (the victim). `bun run neighbours`
 * measures the slowdown precisely.
 */
import { expect, test } from 'bun:test'
import { some } from '../../support/database/extent.ts'
import { ATTACKS } from './attacks.ts'
import { type Observation, observeNeighbours } from './neighbours.ts'
import '../../support/long.ts'

/** Names the attack that runs in every `npm test`. */
const SHORT = 'a backlog of 60 KB'

test('every call of a project succeeds while another project overloads each shared resource', async () => {
  const attacks = some([...new Set([SHORT, ...Object.keys(ATTACKS)])])
  const rows: Observation[] = []
  await observeNeighbours({
    attacks,
    size: { inbox: 10_000, flood: 12 },
    quietMs: 500,
    attackMs: 1_500,
    onRow: (row) => rows.push(row),
  })
  expect(rows.map(({ attack }) => attack)).toEqual(['quiet', ...attacks])
  for (const { attack, failures, times } of rows) {
    expect([attack, failures]).toEqual([attack, []])
    for (const own of Object.values(times)) expect(own.length).toBeGreaterThan(0)
  }
})
