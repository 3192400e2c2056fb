import { type Config, parseReceiptSeed, type ReceiptSeed } from '../../shared/config/config.ts'
import {
  type PublicReceiptKey,
  publicReceiptKey,
  type ReceiptKey,
} from '../../shared/till/receiptKey.ts'
import type { Pool, Queryable } from '../db.ts'
import { keptKey } from '../keyring/keptKey.ts'

/** Where development keeps its generated signing key. */
const FILE = 'receipt-signing-key'

/**
 * The seeds of the receipt keys, the signing one first: those of RECEIPT_SIGNING_KEYS, else one that is generated and
 * kept in DATA_DIR. The configuration refuses the latter in production.
 */
export function receiptSeeds(
  config: Pick<Config, 'receiptSeeds' | 'dataDir'>,
): readonly ReceiptSeed[] {
  if (config.receiptSeeds !== undefined) return config.receiptSeeds
  return [parseReceiptSeed(keptKey(config.dataDir, FILE))]
}

/**
 * Publishes the public halves of the keys that a worker holds, and says which one signs now. They stay published when
 * they are gone from the settings.
 * @param keys the signing one first.
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

/** Every key that may have signed a receipt, the newest signing one first. */
export async function listReceiptKeys(db: Queryable): Promise<PublicReceiptKey[]> {
  const { rows } = await db.query<{ did: string; public_key_hex: string }>({
    name: 'list-receipt-keys',
    text: `select did, public_key_hex from receipt_keys order by signs_since desc nulls last, kid`,
  })
  return rows.map((row) => publicReceiptKey({ publicKeyHex: row.public_key_hex, did: row.did }))
}
