import { ConfigError, parseConfig } from '../../shared/config/config.ts'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { formatUsdc } from '../../shared/till/usdc.ts'
import { onDatabase } from '../command.ts'
import { createKeyringSource, masterKeys } from '../keyring/keyring.ts'
import { rotatePurseKey } from './payout.ts'

/**
 * Runs the command `bun run purse:rotate PROJECT`. The command gives a purse a new private key and address, and moves
 * the purse's money that is not reserved to the new address.
 */
async function rotate(): Promise<void> {
  const [projectId = '', ...more] = process.argv.slice(2)
  if (more.length > 0 || projectId === '') {
    throw new ConfigError('usage: bun run purse:rotate PROJECT')
  }
  const config = parseConfig(process.env, ['MASTER_KEYS'])
  await onDatabase(config, { name: 'purser rotation' }, async (pool) => {
    const keyring = await createKeyringSource(masterKeys(config))(pool)
    const actor = { projectId, keyPrefix: 'operator', requestId: 'purse:rotate' }
    const rotated = await rotatePurseKey(pool, keyring, actor)
    if (rotated === null) throw new ConfigError('the project has no purse')
    const { address, movedAtomic } = rotated
    process.stdout.write(
      `the new address is ${address}; ${formatUsdc(movedAtomic)} USDC go there. A payTo of the old address must be set anew\n`,
    )
  })
}

try {
  await rotate()
} catch (error) {
  const expected = error instanceof ConfigError
  const away = isDatabaseUnavailable(error) ? 'the database is away' : String(error)
  process.stderr.write(`${expected ? error.message : `nothing was changed: ${away}`}\n`)
  process.exitCode = expected ? 78 : 1
}
