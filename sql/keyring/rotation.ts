import {
  BrokenSealError,
  type Keyring,
  type SecretContext,
  type WrappedKey,
} from '../../shared/vault/envelope.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { encryptPlainWebhookSecrets, webhookContext } from '../events/webhookSecrets.ts'
import { dkimContext } from '../mail/domains/dkimKeys.ts'
import { useContext } from '../vault/uses.ts'

/** Data keys rewrapped in one transaction. It takes some milliseconds: a concurrent writer waits as long. */
const BATCH = 500
const LOCKED_WAIT_MS = 50

/** A data key under an old master key. `at` is the key of its row. */
type StaleKey = WrappedKey & { at: unknown[]; label: string; context: SecretContext }

const SHOWN_MAX = 10

/** Some data keys do not unwrap under the right master keys: their rows are damaged or tampered with. */
export class BrokenRowsError extends Error {
  constructor(labels: readonly string[]) {
    const shown = labels.slice(0, SHOWN_MAX).join(', ')
    const more = labels.length > SHOWN_MAX ? ` and ${labels.length - SHOWN_MAX} more` : ''
    super(`damaged secrets; restore or delete them before you remove the old key: ${shown}${more}`)
  }
}

/** A table that holds wrapped data keys. */
type KeyTable = {
  count(db: Queryable, currentId: string): Promise<number>
  /** A key before all rows. */
  start: unknown[]
  /** Locks the next stale rows after a key. It skips locked rows; the next pass takes them. */
  lockStale(db: Queryable, currentId: string, after: unknown[]): Promise<StaleKey[]>
  update(db: Queryable, rewrapped: (WrappedKey & { at: unknown[] })[]): Promise<void>
}

const count = async (db: Queryable, text: string, currentId: string) =>
  (await db.query<{ count: number }>(text, [currentId])).rows[0]!.count

const credentialKeys: KeyTable = {
  start: [0, 0],
  count: (db, currentId) =>
    count(
      db,
      'select count(*)::int as count from credential_versions where key_id <> $1',
      currentId,
    ),
  async lockStale(db, currentId, after) {
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
  async update(db, rewrapped) {
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

/** Both tables of webhooks have the same columns for the secret. */
const webhookKeys = (table: 'seller_endpoints' | 'project_webhooks'): KeyTable => ({
  start: [''],
  count: (db, currentId) =>
    count(db, `select count(*)::int as count from ${table} where webhook_key_id <> $1`, currentId),
  async lockStale(db, currentId, after) {
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
  async update(db, rewrapped) {
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

const dkimKeys: KeyTable = {
  start: [0],
  count: (db, currentId) =>
    count(db, 'select count(*)::int as count from dkim_keys where key_id <> $1', currentId),
  async lockStale(db, currentId, after) {
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
  async update(db, rewrapped) {
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

const useKeys: KeyTable = {
  start: [''],
  count: (db, currentId) =>
    count(db, 'select count(*)::int as count from vault_uses where key_id <> $1', currentId),
  async lockStale(db, currentId, after) {
    const { rows } = await db.query<{
      id: string
      project_id: string
      content_version: number
      key_id: string
      wrapped_key: Buffer
    }>(
      `select id, project_id, content_version, key_id, wrapped_key from vault_uses
       where key_id <> $1 and id > $2 order by id limit ${BATCH} for no key update skip locked`,
      [currentId, ...after],
    )
    return rows.map((row) => ({
      keyId: row.key_id,
      wrappedKey: row.wrapped_key,
      at: [row.id],
      label: `the request or answer of ${row.id}`,
      context: useContext(row.project_id, row.id, row.content_version),
    }))
  },
  async update(db, rewrapped) {
    await db.query(
      `update vault_uses u set key_id = n.key_id, wrapped_key = n.wrapped_key
       from unnest($1::text[], $2::text[], $3::bytea[]) n (id, key_id, wrapped_key) where u.id = n.id`,
      [
        rewrapped.map(({ at }) => at[0]),
        rewrapped.map(({ keyId }) => keyId),
        rewrapped.map(({ wrappedKey }) => wrappedKey),
      ],
    )
  },
}

const KEY_TABLES = [
  credentialKeys,
  webhookKeys('seller_endpoints'),
  webhookKeys('project_webhooks'),
  dkimKeys,
  useKeys,
]

/** The number of secrets under old master keys. */
export async function countStale(db: Queryable, keyring: Keyring): Promise<number> {
  const counts = await Promise.all(
    KEY_TABLES.map((keyTable) => keyTable.count(db, keyring.currentId)),
  )
  return counts.reduce((sum, n) => sum + n, 0)
}

/**
 * Rewraps every data key under the current master key while the service runs. Each batch is one transaction: after a
 * stop or crash all secrets are readable, and another run continues.
 *
 * @param onProgress called with the number done so far.
 * @returns the number of rewrapped data keys.
 * @throws {BrokenRowsError} when data keys do not unwrap; all others are done.
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
    for (const keyTable of KEY_TABLES) {
      let after: unknown[] | undefined = keyTable.start
      while (after !== undefined) {
        const batch = await rewrapBatch(pool, keyring, keyTable, after)
        broken.push(...batch.broken)
        done += batch.moved
        if (batch.moved > 0) onProgress(done)
        after = batch.last
      }
    }
    const stale = await countStale(pool, keyring)
    if (stale > 0 && stale === broken.length) throw new BrokenRowsError(broken)
    if (stale === 0) return done
    // A writer locks the remaining rows for a moment.
    if (done === before) await Bun.sleep(LOCKED_WAIT_MS)
  }
}

/** One step of a pass: the rows after a key. The next step begins at `last`. */
function rewrapBatch(
  pool: Pool,
  keyring: Keyring,
  keyTable: KeyTable,
  after: unknown[],
): Promise<{ moved: number; broken: string[]; last: unknown[] | undefined }> {
  return transaction(pool, async (db) => {
    const stale = await keyTable.lockStale(db, keyring.currentId, after)
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
    if (rewrapped.length > 0) await keyTable.update(db, rewrapped)
    return { moved: rewrapped.length, broken, last: stale.at(-1)?.at }
  })
}
