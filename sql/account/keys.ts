import { timingSafeEqual } from 'node:crypto'
import { hashKey, type KeyKind, keyLookupPrefix } from '../../shared/apiKey.ts'
import type { Queryable } from '../db.ts'
import { notifyKeysChanged } from '../events/events.ts'
import { rateWindowUpsert, type Usage } from './rateWindows.ts'

/** The identity of a key: one project, or the platform. */
export type Identity = {
  kind: KeyKind
  keyId: string
  /** The public part of the key: its kind and twelve digits. */
  keyPrefix: string
  /** The project a project key acts as; null for a platform key. */
  projectId: string | null
  /** The project's inbox address; null for a platform key. */
  inboxAddress: string | null
  scopes: string[]
}

type KeyRow = {
  id: string
  kind: KeyKind
  project_id: string | null
  email_address: string | null
  key_hash: Buffer
  scopes: string[]
  used: number | null
  resets_at: Date | null
}

const FIND_KEY = `
  with candidate as (
    select k.id, k.kind, k.project_id, k.key_hash, k.scopes, p.email_address,
           coalesce(k.project_id, 'key:' || k.id) || $3 as subject
    from api_keys k left join projects p on p.id = k.project_id
    where k.lookup_prefix = $1 and k.revoked_at is null and p.deleted_at is null
  ), counted as (
    ${rateWindowUpsert('select subject from candidate where key_hash = $2')}
  )
  select c.id, c.kind, c.project_id, c.email_address, c.key_hash, c.scopes, w.used, w.resets_at
  from candidate c left join counted w on w.subject = c.subject`

/**
 * Finds the identity of a key and counts the request in its rate window, in one round trip. Keys are not cached: every
 * API process sees a rotated, narrowed or deleted key at the next request.
 * @param budget of the project that the request counts in; '' is the common one.
 * @returns null: no live key matches.
 */
export async function authenticate(
  db: Queryable,
  key: string,
  budget: '' | ':x402' = '',
): Promise<{ identity: Identity; usage: Usage } | null> {
  const hash = hashKey(key)
  const { rows } = await db.query<KeyRow>({
    name: 'find-key',
    text: FIND_KEY,
    values: [keyLookupPrefix(key), hash, budget],
  })
  for (const row of rows) {
    if (!timingSafeEqual(row.key_hash, hash) || row.used === null || row.resets_at === null)
      continue
    return {
      identity: {
        kind: row.kind,
        keyId: row.id,
        keyPrefix: keyLookupPrefix(key),
        projectId: row.project_id,
        inboxAddress: row.email_address,
        scopes: row.scopes,
      },
      usage: { used: row.used, resetsAt: row.resets_at },
    }
  }
  return null
}

/** The current scopes of a key; null: revoked, or its project is deleted. */
export async function findKeyScopes(db: Queryable, keyId: string): Promise<string[] | null> {
  const { rows } = await db.query<{ scopes: string[] }>({
    name: 'find-key-scopes',
    text: `select k.scopes from api_keys k left join projects p on p.id = k.project_id
           where k.id = $1 and k.revoked_at is null and p.deleted_at is null`,
    values: [keyId],
  })
  return rows[0]?.scopes ?? null
}

/** Stores a project's new key; the caller has revoked the old one. */
export async function insertProjectKey(
  db: Queryable,
  { key, projectId, scopes }: { key: string; projectId: string; scopes: readonly string[] },
): Promise<void> {
  await db.query(
    `insert into api_keys (kind, project_id, lookup_prefix, key_hash, scopes)
     values ('project', $1, $2, $3, $4)`,
    [projectId, keyLookupPrefix(key), hashKey(key), scopes],
  )
}

/** Stores a platform key; a known key changes nothing. */
export async function insertPlatformKey(
  db: Queryable,
  key: string,
  name: string | null = null,
): Promise<void> {
  await db.query(
    `insert into api_keys (kind, lookup_prefix, key_hash, name) values ('platform', $1, $2, $3)
     on conflict (key_hash) do nothing`,
    [keyLookupPrefix(key), hashKey(key), name],
  )
}

/** Whether this exact key was ever stored, live or revoked. */
export async function isKnownKey(db: Queryable, key: string): Promise<boolean> {
  const { rowCount } = await db.query('select from api_keys where key_hash = $1', [hashKey(key)])
  return rowCount === 1
}

/** Revokes a project's live key. */
export async function revokeProjectKey(db: Queryable, projectId: string): Promise<void> {
  await db.query(
    `update api_keys set revoked_at = clock_timestamp()
     where project_id = $1 and revoked_at is null`,
    [projectId],
  )
  await notifyKeysChanged(db, projectId)
}
