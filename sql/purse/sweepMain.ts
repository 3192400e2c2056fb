import { isAddress } from 'viem'
import { ConfigError, parseConfig } from '../../shared/config/config.ts'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { formatUsdc } from '../../shared/till/usdc.ts'
import { onDatabase } from '../command.ts'
import { createKeyringSource, masterKeys } from '../keyring/keyring.ts'
import { sweepPurse } from './transferOut.ts'

const REFUSALS = {
  no_purse: 'the project has no purse',
  no_chain: 'the payment workers have not reached the chain yet',
  nothing_free: 'nothing is free: signed payments stay until they end',
} as const

/**
 * Runs the command `bun run purse:sweep PROJECT ADDRESS`, which sends all money of a purse that is not reserved to an
 * address.
 */
async function sweep(): Promise<void> {
  const [projectId = '', payTo = '', ...more] = process.argv.slice(2)
  if (more.length > 0 || projectId === '' || !isAddress(payTo)) {
    throw new ConfigError(
      'usage: bun run purse:sweep PROJECT ADDRESS, the address with its checksum',
    )
  }
  const config = parseConfig(process.env, ['MASTER_KEYS'])
  await onDatabase(config, { name: 'purser sweep' }, async (pool) => {
    const keyring = await createKeyringSource(masterKeys(config))(pool)
    const actor = { projectId, keyPrefix: 'operator', requestId: 'purse:sweep' }
    const swept = await sweepPurse(pool, keyring, actor, payTo)
    if (swept.kind !== 'ok') throw new ConfigError(REFUSALS[swept.kind])
    process.stdout.write(`${formatUsdc(swept.amountAtomic)} USDC go to ${payTo} (${swept.id})\n`)
  })
}

try {
  await sweep()
} catch (error) {
  const expected = error instanceof ConfigError
  const away = isDatabaseUnavailable(error) ? 'the database is away' : String(error)
  process.stderr.write(`${expected ? error.message : `nothing was sent: ${away}`}\n`)
  process.exitCode = expected ? 78 : 1
}
