import {
  BrokenSealError,
  type Keyring,
  type SecretContext,
  type WrappedKey,
} from '../../shared/vault/envelope.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { encryptPlainWebhookSecrets, webhookContext } from '../events/webhookSecrets.ts'
import { dkimContext } from '../mail/dkimKeys.ts'

/** Data keys wrapped anew in one transaction: some milliseconds, which is how long a writer of one of them may wait. */
const BATCH = 500
const LOCKED_WAIT_MS = 50

/** A data key that is under another master key than the current one. `at` is where it lies. */
type Stale = WrappedKey & { at: unknown[]; label: string; context: SecretContext }

const SHOWN_MAX = 10

/** Data keys that do not unwrap, though their master keys are the right ones: rows were damaged or tampered with. */
export class BrokenRowsError extends Error {
  constructor(labels: readonly string[]) {
    const shown = labels.slice(0, SHOWN_MAX).join(', ')
    const more = labels.length > SHOWN_MAX ? ` and ${labels.length - SHOWN_MAX} more` : ''
    super(`damaged, to be restored or deleted before the old key goes: ${shown}${more}`)
  }
}

/** Where wrapped data keys lie. */
type Shelf = {
  count(db: Queryable, currentId: string): Promise<number>
  /** A place before all rows. */
  start: unknown[]
  /** Locks the next ones after a place; what somebody else has locked is left for the next walk, so we wait for nobody. */
  take(db: Queryable, currentId: string, after: unknown[]): Promise<Stale[]>
  put(db: Queryable, rewrapped: (WrappedKey & { at: unknown[] })[]): Promise<void>
}

const count = async (db: Queryable, text: string, currentId: string) =>
  (await db.query<{ count: number }>(text, [currentId])).rows[0]!.count

const credentialShelf: Shelf = {
  start: [0, 0],
  count: (db, currentId) =>
    count(
      db,
      'select count(*)::int as count from credential_versions where key_id <> $1',
      currentId,
    ),
  async take(db, currentId, after) {
    const { rows } = await db.query<{
      credential_row: string
      version: number
      key_id: string
      wrapped_key: Buffer
      project_id: string
      name: string
      id: string
    }>(
      `select v.credential_row, v.version, v.key_id, v.wrapped_key, c.project_id, c.name, c.id
       from credential_versions v join credentials c on c.row = v.credential_row
       where v.key_id <> $1 and (v.credential_row, v.version) > ($2::bigint, $3::int)
       order by v.credential_row, v.version limit ${BATCH} for no key update of v skip locked`,
      [currentId, ...after],
    )
    return rows.map(({ credential_row, version, key_id, wrapped_key, project_id, name, id }) => ({
      keyId: key_id,
      wrappedKey: wrapped_key,
      at: [credential_row, version],
      label: `version ${version} of credential ${id}`,
      context: { purpose: 'credential', projectId: project_id, name, version },
    }))
  },
  async put(db, rewrapped) {
    await db.query(
      `update credential_versions v set key_id = n.key_id, wrapped_key = n.wrapped_key
       from unnest($1::bigint[], $2::int[], $3::text[], $4::bytea[]) n (row, version, key_id, wrapped_key)
       where v.credential_row = n.row and v.version = n.version`,
      [
        rewrapped.map(({ at }) => at[0]),
        rewrapped.map(({ at }) => at[1]),
        rewrapped.map(({ keyId }) => keyId),
        rewrapped.map(({ wrappedKey }) => wrappedKey),
      ],
    )
  },
}

/** Webhooks of sellers' endpoints and of projects lie in tables of their own, in columns of the same names. */
const webhookShelf = (table: 'seller_endpoints' | 'project_webhooks'): Shelf => ({
  start: [''],
  count: (db, currentId) =>
    count(db, `select count(*)::int as count from ${table} where webhook_key_id <> $1`, currentId),
  async take(db, currentId, after) {
    const { rows } = await db.query<{
      id: string
      project_id: string
      webhook_key_id: string
      webhook_wrapped_key: Buffer
    }>(
      `select id, project_id, webhook_key_id, webhook_wrapped_key from ${table}
       where webhook_key_id <> $1 and id > $2
       order by id limit ${BATCH} for no key update skip locked`,
      [currentId, ...after],
    )
    return rows.map((row) => ({
      keyId: row.webhook_key_id,
      wrappedKey: row.webhook_wrapped_key,
      at: [row.id],
      label: `the webhook secret of ${row.id}`,
      context: webhookContext(row.project_id, row.id),
    }))
  },
  async put(db, rewrapped) {
    await db.query(
      `update ${table} e set webhook_key_id = n.key_id, webhook_wrapped_key = n.wrapped_key
       from unnest($1::text[], $2::text[], $3::bytea[]) n (id, key_id, wrapped_key) where e.id = n.id`,
      [
        rewrapped.map(({ at }) => at[0]),
        rewrapped.map(({ keyId }) => keyId),
        rewrapped.map(({ wrappedKey }) => wrappedKey),
      ],
    )
  },
})

const dkimShelf: Shelf = {
  start: [0],
  count: (db, currentId) =>
    count(db, 'select count(*)::int as count from dkim_keys where key_id <> $1', currentId),
  async take(db, currentId, after) {
    const { rows } = await db.query<{
      row: string
      domain: string
      selector: string
      key_id: string
      wrapped_key: Buffer
    }>(
      `select row, domain, selector, key_id, wrapped_key from dkim_keys where key_id <> $1 and row > $2::bigint
       order by row limit ${BATCH} for no key update skip locked`,
      [currentId, ...after],
    )
    return rows.map(({ row, domain, selector, key_id, wrapped_key }) => ({
      keyId: key_id,
      wrappedKey: wrapped_key,
      at: [row],
      label: `the DKIM key ${selector} of ${domain}`,
      context: dkimContext(domain, selector),
    }))
  },
  async put(db, rewrapped) {
    await db.query(
      `update dkim_keys d set key_id = n.key_id, wrapped_key = n.wrapped_key
       from unnest($1::bigint[], $2::text[], $3::bytea[]) n (row, key_id, wrapped_key) where d.row = n.row`,
      [
        rewrapped.map(({ at }) => at[0]),
        rewrapped.map(({ keyId }) => keyId),
        rewrapped.map(({ wrappedKey }) => wrappedKey),
      ],
    )
  },
}

const SHELVES = [
  credentialShelf,
  webhookShelf('seller_endpoints'),
  webhookShelf('project_webhooks'),
  dkimShelf,
]

/** How many secrets are under other master keys than the current one. */
export async function countStale(db: Queryable, keyring: Keyring): Promise<number> {
  const counts = await Promise.all(SHELVES.map((shelf) => shelf.count(db, keyring.currentId)))
  return counts.reduce((sum, n) => sum + n, 0)
}

/**
 * Brings every data key under the current master key, while the service goes on reading and writing. Each batch is a
 * transaction of its own: stopped at any point, by a crash too, all is readable, and another run does the rest.
 *
 * @param onProgress told how many are done so far.
 * @returns how many there were.
 * @throws {BrokenRowsError} when there were data keys that do not unwrap; all others are done.
 */
export async function rotateMasterKey(
  pool: Pool,
  keyring: Keyring,
  onProgress: (done: number) => void,
): Promise<number> {
  await encryptPlainWebhookSecrets(pool, keyring)
  let done = 0
  for (;;) {
    const broken: string[] = []
    const before = done
    for (const shelf of SHELVES) {
      let after: unknown[] | undefined = shelf.start
      while (after !== undefined) {
        const batch = await rewrapBatch(pool, keyring, shelf, after)
        broken.push(...batch.broken)
        done += batch.moved
        if (batch.moved > 0) onProgress(done)
        after = batch.last
      }
    }
    const stale = await countStale(pool, keyring)
    if (stale > 0 && stale === broken.length) throw new BrokenRowsError(broken)
    if (stale === 0) return done
    // What is left is locked by a writer, for a moment.
    if (done === before) await Bun.sleep(LOCKED_WAIT_MS)
  }
}

/** One walk's step: the rows after a place. `last` is where the next one begins. */
function rewrapBatch(
  pool: Pool,
  keyring: Keyring,
  shelf: Shelf,
  after: unknown[],
): Promise<{ moved: number; broken: string[]; last: unknown[] | undefined }> {
  return transaction(pool, async (db) => {
    const stale = await shelf.take(db, keyring.currentId, after)
    const broken: string[] = []
    const rewrapped = stale.flatMap(({ at, label, context, ...wrapped }) => {
      try {
        return [{ at, ...keyring.rewrap(wrapped, context) }]
      } catch (error) {
        if (!(error instanceof BrokenSealError)) throw error
        broken.push(label)
        return []
      }
    })
    if (rewrapped.length > 0) await shelf.put(db, rewrapped)
    return { moved: rewrapped.length, broken, last: stale.at(-1)?.at }
  })
}
