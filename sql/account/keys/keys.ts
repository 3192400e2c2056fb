import { timingSafeEqual } from 'node:crypto'
import { hashKey, type KeyKind, keyLookupPrefix } from '../../../shared/apiKey.ts'
import type { Queryable } from '../../db.ts'
import { notifyKeysChanged } from '../../events/events.ts'
import { type Lsn, parseLsn, writtenTo } from '../../operations/replica.ts'
import { type RateWindow, rateWindowUpsert, type Usage } from './rateWindows.ts'

/** Describes the identity that an API key proves: one project, or the platform. */
export type Identity = {
  /**
   * Holds the kind of the API key: `project`, `platform` or `oauth`. The kind `oauth` means an OAuth access token,
   * which is valid only at the MCP endpoint.
   */
  kind: KeyKind | 'oauth'
  keyId: string
  /**
   * Holds the public part of the API key: the kind of the API key and twelve digits. For an OAuth access token, the
   * public part is `oauth:` and the id of the OAuth grant.
   */
  keyPrefix: string
  /** Holds the project for which a project key acts. For a platform key, the project is null. */
  projectId: string | null
  /** Holds the inbox address of the API key's project. Null means that the API key is a platform key. */
  inboxAddress: string | null
  scopes: string[]
  /**
   * Tells whether the mail of an OAuth client waits for the owner's approval. If `holdsMail` is absent, the project's
   * policy decides whether mail waits for approval.
   */
  holdsMail?: boolean
}

type KeyRow = {
  n: number
  id: string
  kind: KeyKind
  project_id: string | null
  email_address: string | null
  key_hash: Buffer
  scopes: string[]
  used: number
  resets_at: Date
  written_to: string | null
}

/** Describes an API key that the service looks up, and the rate window (the count of one minute) for the request. */
export type WantedKey = { key: string; budget: RateWindow }
/** Holds the identity of a live API key, and the number of requests of its project in the current minute. */
export type FoundKey = {
  identity: Identity
  usage: Usage
  /**
   * Holds the position in the primary database's write-ahead log after the project's last write. Null means that no
   * write of the project is known.
   */
  writtenTo: Lsn | null
}

/**
 * Finds API keys and counts their requests. The SQL adds the requests of a batch to the count one by one, so that each
 * request sees its own count. It locks the rate windows in the order of `subject`, so that two batches cannot deadlock.
 */
const FIND_KEYS = `
  with asked as (
    select * from unnest($1::int[], $2::text[], $3::bytea[], $4::text[]) as a (n, lookup_prefix, key_hash, budget)
  ), candidate as (
    select a.n, k.id, k.kind, k.project_id, k.key_hash, k.scopes, p.email_address,
           coalesce(k.project_id, 'key:' || k.id) || a.budget as subject
    from asked a
    join api_keys k on k.lookup_prefix = a.lookup_prefix and k.key_hash = a.key_hash and k.revoked_at is null
    left join projects p on p.id = k.project_id
    where p.deleted_at is null
  ), counted as (
    ${rateWindowUpsert('select subject, count(*)::int as requests from candidate group by subject order by subject', 'requests')}
  )
  select c.n, c.id, c.kind, c.project_id, c.email_address, c.key_hash, c.scopes, w.resets_at,
    ${writtenTo('c.project_id', '$5')} as written_to,
    (w.used - count(*) over (partition by c.subject)
      + row_number() over (partition by c.subject order by c.n))::int as used
  from candidate c join counted w on w.subject = c.subject`

/**
 * Finds the identities of API keys and counts their requests in the rate windows, in one round trip. The service does
 * not cache API keys. Therefore every API process notices a changed or revoked key at the next request.
 * @returns one result for each entry of `wanted`, in the same order. Null means that no live API key matches the entry.
 */
export async function authenticateAll(
  db: Queryable,
  wanted: readonly WantedKey[],
  { needsWritten = false }: { needsWritten?: boolean } = {},
): Promise<(FoundKey | null)[]> {
  const hashes = wanted.map(({ key }) => hashKey(key))
  const { rows } = await db.query<KeyRow>({
    name: 'find-keys',
    text: FIND_KEYS,
    values: [
      wanted.map((_, n) => n),
      wanted.map(({ key }) => keyLookupPrefix(key)),
      hashes,
      wanted.map(({ budget }) => budget),
      needsWritten,
    ],
  })
  const byNumber = new Map(rows.map((row) => [row.n, row]))
  return wanted.map(({ key }, n) => {
    const row = byNumber.get(n)
    if (row === undefined || !timingSafeEqual(row.key_hash, hashes[n]!)) return null
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
      writtenTo: row.written_to === null ? null : parseLsn(row.written_to),
    }
  })
}

/** Returns the current scopes of an API key. @returns null if the API key is revoked, or if its project is deleted. */
export async function findKeyScopes(db: Queryable, keyId: string): Promise<string[] | null> {
  const { rows } = await db.query<{ scopes: string[] }>({
    name: 'find-key-scopes',
    text: `select k.scopes from api_keys k left join projects p on p.id = k.project_id
           where k.id = $1 and k.revoked_at is null and p.deleted_at is null`,
    values: [keyId],
  })
  return rows[0]?.scopes ?? null
}

/** Stores a project's new API key. The caller has already revoked the project's old API key. */
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

/** Stores a platform key. If the platform key is already stored, the call changes nothing. */
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

/** Tells whether an API key is stored, even if the API key is revoked. */
export async function isKnownKey(db: Queryable, key: string): Promise<boolean> {
  const { rowCount } = await db.query('select from api_keys where key_hash = $1', [hashKey(key)])
  return rowCount === 1
}

/** Revokes a project's live API key. */
export async function revokeProjectKey(db: Queryable, projectId: string): Promise<void> {
  await db.query(
    `update api_keys set revoked_at = clock_timestamp()
     where project_id = $1 and revoked_at is null`,
    [projectId],
  )
  await notifyKeysChanged(db, projectId)
}
