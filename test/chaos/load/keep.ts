import type { VaultName } from '../audit/ledger.ts'
import type { Random } from '../random.ts'
import { type Load, rounds, untilDecided } from './load.ts'

const NAMES = 4

/** Runs a client that puts, reads and deletes vault credentials under a few names, one operation after another. */
export function keep(load: Load, random: Random, name: string): Promise<void> {
  const entries = Array.from({ length: NAMES }, (_, n): VaultName => {
    const entry = { name: `vault ${name}/${n}`, writes: [], reads: [] }
    load.ledger.vault.push(entry)
    return entry
  })
  return rounds(load, random, [50, 500], async (n) => {
    const entry = random.pick(entries)
    const deed = random.pick(['put', 'put', 'put', 'read', 'read', 'delete'] as const)
    if (deed === 'read') await read(load, entry)
    else await write(load, random, entry, deed === 'put' ? `version ${n}` : null)
  })
}

const pathOf = ({ name }: VaultName) => `/v0/vault/${encodeURIComponent(name)}`

async function write(
  load: Load,
  random: Random,
  entry: VaultName,
  value: string | null,
): Promise<void> {
  await untilDecided(load, random, async () => {
    const startMs = performance.now()
    const answer = await load.seller.call(
      value === null
        ? { kind: 'vault delete', method: 'DELETE', path: pathOf(entry) }
        : {
            kind: 'vault put',
            method: 'PUT',
            path: pathOf(entry),
            body: { type: 'CUSTOM', data: { value }, metadata: {} },
          },
    )
    const isDone = answer !== null && [200, 204, 404].includes(answer.status)
    const told = answer === null ? 'unknown' : isDone ? 'accepted' : 'refused'
    entry.writes.push({ value, startMs, endMs: performance.now(), told })
    return told
  })
}

async function read(load: Load, entry: VaultName): Promise<void> {
  const startMs = performance.now()
  const answer = await load.seller.call({ kind: 'vault get', method: 'GET', path: pathOf(entry) })
  if (answer === null) return
  if (answer.status !== 200 && answer.status !== 404) {
    const { status, body } = answer
    load.ledger.surprises.push(`${entry.name} could not be read: ${status} ${body?.message}`)
    return
  }
  const value = answer.status === 200 ? answer.body.data.value : null
  entry.reads.push({ value, startMs, endMs: performance.now() })
}
