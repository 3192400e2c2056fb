import { ConfigError, parseConfig } from '../../shared/config/config.ts'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { progressBar } from '../../shared/progressBar.ts'
import { Keyring } from '../../shared/vault/envelope.ts'
import { onDatabase } from '../command.ts'
import { keysInUse, masterKeys, registerMasterKeys } from './keyring.ts'
import { BrokenRowsError, countStale, rotateMasterKey } from './rotation.ts'

/**
 * Runs the command `bun run vault:rotate-master-key` while the service runs. The command encrypts the data key of every
 * secret again under the first master key of MASTER_KEYS. An operator can stop and restart the command at any time.
 */
async function rotate(): Promise<void> {
  const config = parseConfig(process.env, ['MASTER_KEYS'])
  const keys = masterKeys(config)
  await onDatabase(config, { name: 'purser rotate', size: 4 }, async (pool) => {
    // With a wrong or missing master key, the command ends here, before it changes any data key.
    await registerMasterKeys(pool, keys)
    const keyring = new Keyring(keys)
    const total = await countStale(pool, keyring)
    const current = JSON.stringify(keyring.currentId)
    const isTerminal = process.stderr.isTTY === true
    const show = progressBar(total, isTerminal, (text) => process.stderr.write(text))
    const done = await rotateMasterKey(pool, keyring, show)
    const droppable = keys.map(({ id }) => id).filter((id) => id !== keyring.currentId)
    const inUse = (await keysInUse(pool)).filter((id) => id !== keyring.currentId)
    process.stdout.write(`${done} secrets rewrapped under ${current}; `)
    if (inUse.length > 0) {
      process.stdout.write(`a process still encrypts under ${inUse.join(', ')}: run this again\n`)
      process.exitCode = 1
    } else if (droppable.length > 0) {
      process.stdout.write(`MASTER_KEYS no longer needs ${droppable.join(', ')}\n`)
    } else {
      process.stdout.write('it is the only key\n')
    }
  })
}

try {
  await rotate()
} catch (error) {
  const expected = error instanceof ConfigError || error instanceof BrokenRowsError
  const away = isDatabaseUnavailable(error) ? 'the database is away; run this again' : String(error)
  process.stderr.write(`${expected ? error.message : `rotation failed: ${away}`}\n`)
  process.exitCode = error instanceof ConfigError ? 78 : 1
}
