import { timingSafeEqual } from 'node:crypto'
import { type Config, ConfigError, parseMasterKey } from '../../shared/config/config.ts'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { Keyring, type MasterKey, masterKeyCheck } from '../../shared/vault/envelope.ts'
import { createPool, isUnmigrated, type Queryable } from '../db.ts'
import { keptKey } from './keptKey.ts'

/** Names the file that holds the generated master key for development. */
const FILE = 'master-key'

/**
 * Compares the master keys of a keyring with the database, and then returns the keyring. @throws {ConfigError} if a
 * master key is wrong or missing.
 */
export type KeyringSource = (db: Queryable) => Promise<Keyring>

/**
 * Returns the master keys of a process. The first master key encrypts new secrets. The master keys come from
 * MASTER_KEYS, or from the generated development key in DATA_DIR. In production the configuration requires MASTER_KEYS.
 */
export const masterKeys = (
  config: Pick<Config, 'masterKeys' | 'dataDir' | 'production'>,
): readonly MasterKey[] => config.masterKeys ?? [parseMasterKey(keptKey(config, FILE))]

/**
 * Creates the keyring of a process. The keyring compares its master keys with the database before their first use,
 * because a wrong master key with a known id must never encrypt a secret.
 */
export function createKeyringSource(keys: readonly MasterKey[]): KeyringSource {
  const keyring = new Keyring(keys)
  let checked: Promise<void> | undefined
  return async (db) => {
    checked ??= registerMasterKeys(db, keys)
    try {
      await checked
    } catch (error) {
      checked = undefined
      throw error
    }
    return keyring
  }
}

/** Tells whether an error means that the database is unavailable or not migrated. */
export const isNotReady = (error: unknown): boolean =>
  isDatabaseUnavailable(error) || isUnmigrated(error)

/**
 * Checks the master keys at the start of a process. If the database is unavailable or not migrated, the check takes
 * place at their first use instead.
 * @throws {ConfigError} if a master key is wrong or missing. The error names the master key.
 */
export async function checkMasterKeys(
  databaseUrl: string,
  config: Pick<Config, 'masterKeys' | 'dataDir' | 'production'>,
): Promise<void> {
  const pool = createPool({ url: databaseUrl, size: 1, name: 'purser keys' })
  try {
    await registerMasterKeys(pool, masterKeys(config))
  } catch (error) {
    if (!isNotReady(error)) throw error
  } finally {
    await pool.end()
  }
}

/**
 * Compares master keys with the master keys registered in the database, and registers new ones. The function registers
 * nothing unless every given master key is right, and every master key in use is given.
 * @throws {ConfigError} if a master key is wrong or missing.
 */
export async function registerMasterKeys(db: Queryable, keys: readonly MasterKey[]): Promise<void> {
  const { checks, known } = await compareMasterKeys(db, keys)
  const added = [...checks].filter(([id]) => !known.has(id))
  if (added.length === 0) return
  await db.query(
    `insert into master_keys (id, check_value) select * from unnest($1::text[], $2::bytea[])
     on conflict (id) do nothing`,
    [added.map(([id]) => id), added.map(([, check]) => check)],
  )
  // Another process may have registered a different master key under the same id in the meantime. Therefore the
  // function compares again.
  await compare(db, checks)
}

/**
 * Compares master keys with the master keys registered in the database, and writes nothing.
 * @throws {ConfigError} if a master key is wrong or missing. The error names the master key.
 */
export async function compareMasterKeys(
  db: Queryable,
  keys: readonly MasterKey[],
): Promise<{ checks: Map<string, Buffer>; known: Set<string> }> {
  const checks = new Map(keys.map((key) => [key.id, masterKeyCheck(key)]))
  const known = await compare(db, checks)
  await refuseMissing(db, [...checks.keys()])
  return { checks, known }
}

async function compare(db: Queryable, checks: Map<string, Buffer>): Promise<Set<string>> {
  const { rows } = await db.query<{ id: string; check_value: Buffer }>(
    'select id, check_value from master_keys where id = any ($1)',
    [[...checks.keys()]],
  )
  for (const { id, check_value } of rows) {
    if (timingSafeEqual(check_value, checks.get(id)!)) continue
    throw new ConfigError(
      `MASTER_KEYS: the key ${JSON.stringify(id)} differs from the key registered under that id`,
    )
  }
  return new Set(rows.map(({ id }) => id))
}

async function refuseMissing(db: Queryable, ids: string[]): Promise<void> {
  const missing = (await keysInUse(db)).filter((id) => !ids.includes(id))
  if (missing.length === 0) return
  const names = missing.map((id) => JSON.stringify(id)).join(', ')
  throw new ConfigError(`MASTER_KEYS: lacks ${names}, which encrypts stored secrets`)
}

/** Lists the ids of the master keys that encrypt at least one secret. */
export async function keysInUse(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select id from master_keys m
     where exists (select from credential_versions v where v.key_id = m.id)
        or exists (select from seller_endpoints e where e.webhook_key_id = m.id)
        or exists (select from project_webhooks w where w.webhook_key_id = m.id)
        or exists (select from dkim_keys d where d.key_id = m.id)
        or exists (select from vault_uses u where u.key_id = m.id)
        or exists (select from purse_keys k where k.key_id = m.id)
        or exists (select from purchases b where b.key_id = m.id)
     order by id`,
  )
  return rows.map(({ id }) => id)
}
