import type { Queryable } from '../../db.ts'

/** Holds the PostgreSQL channel on which the service announces each created or deleted inbox address. */
export const ADDRESSES_CHANNEL = 'purser_addresses'

/**
 * Notifies the SMTP listeners that an inbox address was created or deleted. PostgreSQL sends the notification on
 * commit.
 */
export async function notifyAddressesChanged(db: Queryable, address: string): Promise<void> {
  await db.query('select pg_notify($1, $2)', [ADDRESSES_CHANNEL, address])
}

/**
 * Returns those of the given email addresses (in lower case) that are inbox addresses of projects on this service. The
 * inbox addresses of deleted projects are left out.
 */
export async function findAddresses(db: Queryable, addresses: string[]): Promise<string[]> {
  const { rows } = await db.query<{ email_address: string }>({
    name: 'find-addresses',
    text: 'select email_address from projects where email_address = any ($1) and deleted_at is null',
    values: [addresses],
  })
  return rows.map((row) => row.email_address)
}

/** Lists at most `limit` inbox addresses that are in use, in byte order after the address `after`. */
export async function listAddresses(
  db: Queryable,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  const { rows } = await db.query<{ email_address: string }>(
    // The query orders the inbox addresses by their bytes, like SQLite, because each SMTP listener updates its own
    // SQLite copy of the addresses range by range.
    `select email_address from projects where email_address collate "C" > $1 and deleted_at is null
     order by email_address collate "C" limit $2`,
    [after, limit],
  )
  return rows.map((row) => row.email_address)
}

/** Returns the projects that own the given inbox addresses. */
export async function findHolders(
  db: Queryable,
  addresses: readonly string[],
): Promise<{ address: string; projectId: string; name: string }[]> {
  const { rows } = await db.query<{ address: string; projectId: string; name: string }>(
    `select email_address as address, id as "projectId", name from projects
     where email_address = any ($1) and deleted_at is null order by email_address`,
    [addresses],
  )
  return rows
}
