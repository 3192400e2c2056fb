import {
  BrokenSealError,
  type Keyring,
  type SecretContext,
  type WrappedKey,
} from '../../shared/vault/envelope.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { encryptPlainWebhookSecrets, webhookContext } from '../events/webhookSecrets.ts'
import { dkimContext } from '../mail/domains/dkimKeys.ts'
import { purchaseContext } from '../purse/purchases/purchaseContent.ts'
import { purseKeyContext } from '../purse/purses.ts'
import { useContext } from '../vault/uses.ts'

/**
 * Sets the maximum number of data keys that one transaction encrypts again, because a concurrent writer waits for the
 * end of this transaction, which takes some milliseconds.
 */
const BATCH = 500
const LOCKED_WAIT_MS = 50

/**
 * Describes a secret's data key that is still encrypted with an old master key. The field `at` is the primary key of
 * the database row that holds the data key.
 */
type StaleKey = WrappedKey & { at: unknown[]; label: string; context: SecretContext }

const SHOWN_MAX = 10

/**
 * Reports that some data keys cannot be decrypted, although the right master keys are given. The database rows of these
 * data keys are damaged, or somebody has changed them.
 */
export class BrokenRowsError extends Error {
  constructor(labels: readonly string[]) {
    const shown = labels.slice(0, SHOWN_MAX).join(', ')
    const more = labels.length > SHOWN_MAX ? ` and ${labels.length - SHOWN_MAX} more` : ''
    super(`damaged secrets; restore or delete them before you remove the old key: ${shown}${more}`)
  }
}

/** Describes a table that holds encrypted data keys, in the columns `key_id` and `wrapped_key`. */
type KeyTable = {
  name: string
  /** Holds the prefix in the names of the columns `key_id` and `wrapped_key`. */
  prefix?: string
  /**
   * Lists the columns of the table's primary key, with their types. The rotation processes the rows of the table in the
   * order of the primary key.
   */
  key: Record<string, 'bigint' | 'int' | 'text'>
  /** Lists those columns outside the primary key of the table that the function `tell` reads. */
  columns: string
  join?: string
  tell(row: Row): { label: string; context: SecretContext }
}
type Row = Record<string, string> & { version: number; content_version: number }

const webhookKeys = (name: 'seller_endpoints' | 'project_webhooks'): KeyTable => ({
  name,
  prefix: 'webhook_',
  key: { id: 'text' },
  columns: 't.project_id',
  tell: ({ id, project_id }) => ({
    label: `the webhook secret of ${id}`,
    context: webhookContext(project_id!, id!),
  }),
})

const KEY_TABLES: readonly KeyTable[] = [
  {
    name: 'credential_versions',
    key: { credential_row: 'bigint', version: 'int' },
    columns: 'c.project_id, c.name, c.id',
    join: 'join credentials c on c.row = t.credential_row',
    tell: ({ id, project_id, name, version }) => ({
      label: `version ${version} of credential ${id}`,
      context: { purpose: 'credential', projectId: project_id!, name: name!, version },
    }),
  },
  webhookKeys('seller_endpoints'),
  webhookKeys('project_webhooks'),
  {
    name: 'dkim_keys',
    key: { row: 'bigint' },
    columns: 't.domain, t.selector',
    tell: ({ domain, selector }) => ({
      label: `the DKIM key ${selector} of ${domain}`,
      context: dkimContext(domain!, selector!),
    }),
  },
  {
    name: 'vault_uses',
    key: { id: 'text' },
    columns: 't.project_id, t.content_version',
    tell: ({ id, project_id, content_version }) => ({
      label: `the request or answer of ${id}`,
      context: useContext(project_id!, id!, content_version),
    }),
  },
  {
    name: 'purse_keys',
    key: { address: 'text' },
    columns: 't.project_id',
    tell: ({ address, project_id }) => ({
      label: `the key of the purse ${address}`,
      context: purseKeyContext(project_id!, address!),
    }),
  },
  {
    name: 'purchases',
    key: { row: 'bigint' },
    columns: 't.id, t.project_id, t.content_version',
    tell: ({ id, project_id, content_version }) => ({
      label: `the request or answer of ${id}`,
      context: purchaseContext(project_id!, id!, content_version),
    }),
  },
]

/** Returns a primary key that is lower than the primary key of every row of the table. */
const startOf = ({ key }: KeyTable): unknown[] =>
  Object.values(key).map((type) => (type === 'text' ? '' : 0))

async function countRows({ name, prefix = '' }: KeyTable, db: Queryable, currentId: string) {
  const { rows } = await db.query<{ count: number }>(
    `select count(*)::int as count from ${name} where ${prefix}key_id <> $1`,
    [currentId],
  )
  return rows[0]!.count
}

/**
 * Locks the rows after a given primary key that have a data key under an old master key. A pass over the table skips
 * rows that another transaction has locked. The next pass processes them.
 */
async function lockStale(
  table: KeyTable,
  db: Queryable,
  currentId: string,
  after: unknown[],
): Promise<StaleKey[]> {
  const { name, prefix = '', key, columns, join = '' } = table
  const names = Object.keys(key)
  const place = names.map((column) => `t.${column}`).join(', ')
  const bound = Object.values(key).map((type, n) => `$${n + 2}::${type}`)
  const { rows } = await db.query<Row & { stale_id: string; stale_key: Buffer }>(
    `select ${place}, t.${prefix}key_id as stale_id, t.${prefix}wrapped_key as stale_key, ${columns}
     from ${name} t ${join}
     where t.${prefix}key_id <> $1 and (${place}) > (${bound.join(', ')})
     order by ${place} limit ${BATCH} for no key update of t skip locked`,
    [currentId, ...after],
  )
  return rows.map((row) => ({
    keyId: row.stale_id,
    wrappedKey: row.stale_key,
    at: names.map((column) => row[column]),
    ...table.tell(row),
  }))
}

async function updateRows(
  { name, prefix = '', key }: KeyTable,
  db: Queryable,
  rewrapped: (WrappedKey & { at: unknown[] })[],
): Promise<void> {
  const names = Object.keys(key)
  const types = [...Object.values(key), 'text', 'bytea']
  await db.query(
    `update ${name} t set ${prefix}key_id = n.new_id, ${prefix}wrapped_key = n.new_key
     from unnest(${types.map((type, n) => `$${n + 1}::${type}[]`).join(', ')}) n (${names.join(', ')}, new_id, new_key)
     where ${names.map((column) => `t.${column} = n.${column}`).join(' and ')}`,
    [
      ...names.map((_, n) => rewrapped.map(({ at }) => at[n])),
      rewrapped.map(({ keyId }) => keyId),
      rewrapped.map(({ wrappedKey }) => wrappedKey),
    ],
  )
}

/** Counts the secrets with a data key that is still encrypted with an old master key. */
export async function countStale(db: Queryable, keyring: Keyring): Promise<number> {
  const counts = await Promise.all(
    KEY_TABLES.map((table) => countRows(table, db, keyring.currentId)),
  )
  return counts.reduce((sum, n) => sum + n, 0)
}

/**
 * Encrypts every data key under the current master key while the service runs. One transaction encrypts one batch of
 * data keys again. After a stop or a crash, all secrets stay readable, and the next call continues.
 *
 * @param onProgress gets the number of data keys that the rotation has encrypted again so far.
 * @returns the number of data keys that the rotation has encrypted again.
 * @throws {BrokenRowsError} if some data keys cannot be decrypted. The rotation first encrypts all other data keys
 * under the current master key.
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
    for (const table of KEY_TABLES) {
      let after: unknown[] | undefined = startOf(table)
      while (after !== undefined) {
        const batch = await rewrapBatch(pool, keyring, table, after)
        broken.push(...batch.broken)
        done += batch.moved
        if (batch.moved > 0) onProgress(done)
        after = batch.last
      }
    }
    const stale = await countStale(pool, keyring)
    if (stale > 0 && stale === broken.length) throw new BrokenRowsError(broken)
    if (stale === 0) return done
    // Other transactions have locked the remaining rows with old data keys. Therefore the function waits for a moment
    // before the next pass over the table.
    if (done === before) await Bun.sleep(LOCKED_WAIT_MS)
  }
}

/**
 * Encrypts one batch of data keys again with the current master key. The batch begins after the primary key `after`.
 * The next batch begins after the primary key `last`.
 */
function rewrapBatch(
  pool: Pool,
  keyring: Keyring,
  table: KeyTable,
  after: unknown[],
): Promise<{ moved: number; broken: string[]; last: unknown[] | undefined }> {
  return transaction(pool, async (db) => {
    const stale = await lockStale(table, db, keyring.currentId, after)
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
    if (rewrapped.length > 0) await updateRows(table, db, rewrapped)
    return { moved: rewrapped.length, broken, last: stale.at(-1)?.at }
  })
}
