import type { Logger } from 'pino'
import type { Config } from '../shared/config/config.ts'
import { createPool } from '../sql/db.ts'
import { encryptPlainWebhookSecrets } from '../sql/events/webhookSecrets.ts'
import {
  checkMasterKeys,
  createKeyringSource,
  isNotReady,
  type KeyringSource,
  masterKeys,
} from '../sql/keyring/keyring.ts'
import { hasDkimKeys } from '../sql/mail/domains/dkimKeys.ts'

/**
 * Loads and checks the master keys of a process that sends mail, as soon as the database is ready. The master keys are
 * mandatory if the database contains DKIM keys.
 * @throws {ConfigError} if a master key is wrong or missing. The error names this master key.
 */
export async function startSigningKeys(
  config: Config,
  databaseUrl: string,
): Promise<KeyringSource> {
  const pool = createPool({ url: databaseUrl, size: 1, name: 'purser keys' })
  try {
    if (await hasDkimKeys(pool)) await checkMasterKeys(databaseUrl, config)
  } catch (error) {
    if (!isNotReady(error)) throw error
  } finally {
    await pool.end()
  }
  return createKeyringSource(masterKeys(config))
}

/**
 * Loads and checks the master keys of a process that delivers webhooks, as soon as the database is ready. Encrypts
 * webhook secrets that an earlier version stored in plain text.
 * @throws {ConfigError} if a master key is wrong or missing. The error names this master key.
 */
export async function startKeyring(
  config: Config,
  databaseUrl: string,
  log: Logger,
): Promise<KeyringSource> {
  const keyring = createKeyringSource(masterKeys(config))
  await checkMasterKeys(databaseUrl, config)
  const pool = createPool({ url: databaseUrl, size: 1, name: 'purser keys' })
  try {
    const encrypted = await encryptPlainWebhookSecrets(pool, await keyring(pool))
    if (encrypted > 0) log.info({ encrypted }, 'plain webhook secrets were encrypted')
  } catch (error) {
    if (!isNotReady(error)) throw error
    log.warn(
      { err: error },
      'the database is not ready; plain webhook secrets wait for the next start',
    )
  } finally {
    await pool.end()
  }
  return keyring
}
