import type { Queryable } from '../db.ts'

/** Notified with an inbox address whenever it begins or ceases to exist. */
export const ADDRESSES_CHANNEL = 'purser_addresses'

/** Tells the SMTP listeners, on commit, that this address is new or gone. */
export async function notifyAddressesChanged(db: Queryable, address: string): Promise<void> {
  await db.query('select pg_notify($1, $2)', [ADDRESSES_CHANNEL, address])
}

/** Which of these addresses (in lower case) are live inboxes. */
export async function findAddresses(db: Queryable, addresses: string[]): Promise<string[]> {
  const { rows } = await db.query<{ email_address: string }>({
    name: 'find-addresses',
    text: 'select email_address from projects where email_address = any ($1) and deleted_at is null',
    values: [addresses],
  })
  return rows.map((row) => row.email_address)
}

/** Live inbox addresses in alphabetical order, at most `limit` after `after`. */
export async function listAddresses(
  db: Queryable,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  const { rows } = await db.query<{ email_address: string }>(
    // Byte order, as SQLite has it: the copy is renewed range by range.
    `select email_address from projects where email_address collate "C" > $1 and deleted_at is null
     order by email_address collate "C" limit $2`,
    [after, limit],
  )
  return rows.map((row) => row.email_address)
}
