import { join } from 'node:path'
import { ATTACKS } from './attacks.ts'
import { type Neighbourhood, startNeighbourhood } from './service.ts'
import { type Observed, OPERATIONS, observe, p99 } from './victim.ts'

/**
 * Holds the measured calls of the victim project during one attack. The name `quiet` means that no attack ran.
 */
export type Observation = Observed & { attack: string }

const WARM_MS = 2_000
/** Holds for how many milliseconds the attack has run before the measurement of the victim begins. */
const LEAD_MS = 1_000

/**
 * Measures the operations of one tenant (the victim) without an attack, and then during each attack by another tenant.
 */
export async function observeNeighbours(options: {
  attacks?: readonly string[]
  /**
   * Sets how many messages the attacker's inbox has (`inbox`), and how many mails one flood attack sends (`flood`).
   */
  size?: { inbox: number; flood: number }
  quietMs: number
  attackMs: number
  onRow: (observation: Observation) => void
}): Promise<void> {
  const size = options.size ?? { inbox: 60_000, flood: 200 }
  await using service = await startNeighbourhood(size.inbox)
  await observe(service, Math.min(WARM_MS, options.quietMs))
  options.onRow({ attack: 'quiet', ...(await observe(service, options.quietMs)) })
  for (const attack of options.attacks ?? Object.keys(ATTACKS)) {
    const attacker = startAttack(service, attack, size.flood)
    try {
      await Bun.sleep(LEAD_MS)
      options.onRow({ attack, ...(await observe(service, options.attackMs)) })
    } finally {
      attacker.kill('SIGKILL')
      await attacker.exited
      await service.calm()
    }
  }
}

function startAttack({ url, smtpPort, attacker }: Neighbourhood, attack: string, flood: number) {
  const target = { url, smtpPort, key: attacker.key, inbox: attacker.address, flood }
  return Bun.spawn(
    [process.execPath, join(import.meta.dir, 'attacks.ts'), attack, JSON.stringify(target)],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
}

/**
 * Writes the 99th percentile (p99) of the duration of each operation in milliseconds, with its ratio to the p99 without
 * an attack.
 */
export function rowText({ attack, times, failures }: Observation, quiet: Observation): string {
  const cells = OPERATIONS.map((name) => {
    const [now, before] = [p99(times[name]), p99(quiet.times[name])]
    return `${now.toFixed(0).padStart(6)} ${`(${(now / before).toFixed(1)})`.padStart(7)}`
  })
  return `${attack.padEnd(24)}${cells.join('')}  ${failures.length} failed`
}

export const HEAD = `${'p99 in ms (to quiet)'.padEnd(24)}${OPERATIONS.map((name) => name.padStart(14)).join('')}`
