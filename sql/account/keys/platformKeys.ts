import { generateKey, keyLookupPrefix } from '../../../shared/apiKey.ts'
import type { Queryable } from '../../db.ts'
import { insertPlatformKey } from './keys.ts'

/** Describes a platform key without the secret part of the key. */
export type PlatformKey = {
  id: string
  prefix: string
  name: string | null
  createdAt: Date
  revokedAt: Date | null
}

const COLUMNS = `id, lookup_prefix as prefix, name, created_at as "createdAt", revoked_at as "revokedAt"`

/**
 * Sets the maximum number of live platform keys of a service. Revoked keys do not count, because the service keeps them
 * for ever. If they counted, nobody could rotate platform keys after some time.
 */
export const PLATFORM_KEYS_MAX = 200

/** Tells whether the service may have one more platform key. */
export async function mayAddPlatformKey(db: Queryable): Promise<boolean> {
  const live = (await listPlatformKeys(db)).filter(({ revokedAt }) => revokedAt === null)
  return live.length < PLATFORM_KEYS_MAX
}

/** Lists at most 200 platform keys: live platform keys before revoked ones, and newer before older ones. */
export async function listPlatformKeys(db: Queryable): Promise<PlatformKey[]> {
  const { rows } = await db.query<PlatformKey>(
    `select ${COLUMNS} from api_keys where kind = 'platform'
     order by revoked_at is not null, created_at desc, id desc limit ${PLATFORM_KEYS_MAX}`,
  )
  return rows
}

/** Creates a platform key. @returns the whole platform key. The database holds only the hash of the platform key. */
export async function createPlatformKey(
  db: Queryable,
  name: string,
): Promise<{ created: PlatformKey; rawKey: string }> {
  const rawKey = generateKey('platform')
  await insertPlatformKey(db, rawKey, name)
  const { rows } = await db.query<PlatformKey>(
    `select ${COLUMNS} from api_keys where kind = 'platform' and lookup_prefix = $1 order by id desc limit 1`,
    [keyLookupPrefix(rawKey)],
  )
  return { created: rows[0]!, rawKey }
}

/** Revokes a platform key. @returns the revoked platform key, or null if no live platform key has the id. */
export async function revokePlatformKey(db: Queryable, id: string): Promise<PlatformKey | null> {
  const { rows } = await db.query<PlatformKey>(
    `update api_keys set revoked_at = clock_timestamp()
     where kind = 'platform' and id = $1 and revoked_at is null returning ${COLUMNS}`,
    [id],
  )
  return rows[0] ?? null
}
