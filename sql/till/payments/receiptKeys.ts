import { type Config, parseReceiptSeed, type ReceiptSeed } from '../../../shared/config/config.ts'
import {
  type PublicReceiptKey,
  publicReceiptKey,
  type ReceiptKey,
} from '../../../shared/till/receiptKey.ts'
import type { Pool, Queryable } from '../../db.ts'
import { keptKey } from '../../keyring/keptKey.ts'

/** Holds the name of the file with the generated receipt signing key for development. */
const FILE = 'receipt-signing-key'

/**
 * Returns the seeds of the keys that sign payment receipts. The first seed belongs to the current signing key. The
 * seeds come from RECEIPT_SIGNING_KEYS, or from the generated seed in DATA_DIR. In production, the configuration
 * requires RECEIPT_SIGNING_KEYS.
 */
export function receiptSeeds(
  config: Pick<Config, 'receiptSeeds' | 'dataDir' | 'production'>,
): readonly ReceiptSeed[] {
  if (config.receiptSeeds !== undefined) return config.receiptSeeds
  return [parseReceiptSeed(keptKey(config, FILE))]
}

/**
 * Publishes the public keys of a worker process that signs payment receipts, and marks the current signing key. Keys
 * that the operator removes from the settings stay published.
 * @param keys lists the current signing key first.
 */
export async function registerReceiptKeys(pool: Pool, keys: readonly ReceiptKey[]): Promise<void> {
  await pool.query(
    `insert into receipt_keys as k (kid, did, public_key_hex, signs_since)
     select i.kid, i.did, i.hex, case when i.n = 1 then clock_timestamp() end
     from unnest($1::text[], $2::text[], $3::text[]) with ordinality i (kid, did, hex, n)
     order by i.kid
     on conflict (kid) do update set signs_since = coalesce(excluded.signs_since, k.signs_since)`,
    [keys.map((key) => key.kid), keys.map((key) => key.did), keys.map((key) => key.publicKeyHex)],
  )
}

/** Tells whether a worker process has already published a receipt key. */
export async function isPublishedKey(db: Queryable, kid: string): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'is-published-key',
    text: 'select from receipt_keys where kid = $1',
    values: [kid],
  })
  return rowCount === 1
}

/** Lists every published receipt key, the newest key first. */
export async function listReceiptKeys(db: Queryable): Promise<PublicReceiptKey[]> {
  const { rows } = await db.query<{ did: string; public_key_hex: string }>({
    name: 'list-receipt-keys',
    text: `select did, public_key_hex from receipt_keys order by signs_since desc nulls last, kid`,
  })
  return rows.map((row) => publicReceiptKey({ publicKeyHex: row.public_key_hex, did: row.did }))
}
