/**
 * `bun run neighbours [ATTACK,…]` prints the p99 of the victim project, without an attack and under each attack. The
 * p99 is the time within which 99 of 100 calls get a response.
 */
import { HEAD, type Observation, observeNeighbours, rowText } from './neighbours.ts'

const print = (line: string) => process.stdout.write(`${line}\n`)

const [attacks = ''] = process.argv.slice(2)
let quiet: Observation | undefined
print(HEAD)
await observeNeighbours({
  ...(attacks === '' ? {} : { attacks: attacks.split(',') }),
  quietMs: 20_000,
  attackMs: 15_000,
  onRow(observation) {
    quiet ??= observation
    print(rowText(observation, quiet))
    for (const failure of new Set(observation.failures.slice(0, 5))) print(`  ${failure}`)
  },
})
