import type { Queryable } from '../../db.ts'

/** Holds the PostgreSQL channel for every created or deleted inbox address. */
export const ADDRESSES_CHANNEL = 'purser_addresses'

/** Notifies the SMTP listeners, on commit, that an inbox address was created or deleted. */
export async function notifyAddressesChanged(db: Queryable, address: string): Promise<void> {
  await db.query('select pg_notify($1, $2)', [ADDRESSES_CHANNEL, address])
}

/** Returns those of the given addresses (in lower case) that are inboxes of projects that are not deleted. */
export async function findAddresses(db: Queryable, addresses: string[]): Promise<string[]> {
  const { rows } = await db.query<{ email_address: string }>({
    name: 'find-addresses',
    text: 'select email_address from projects where email_address = any ($1) and deleted_at is null',
    values: [addresses],
  })
  return rows.map((row) => row.email_address)
}

/** Lists the inbox addresses that are in use, in alphabetical order, at most `limit` after `after`. */
export async function listAddresses(
  db: Queryable,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  const { rows } = await db.query<{ email_address: string }>(
    // The addresses are ordered by their bytes, as in SQLite, because each SMTP listener renews its own copy of the
    // addresses range by range.
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
