import type { ObjectStore } from '../../shared/blobs/objectStore.ts'
import type { Pool, Queryable } from '../db.ts'
import { BLOB_BYTES, readBlob, type StoredContent, writeBlob } from './blobs.ts'
import { LostObjectError, sha256 } from './sealedBlob.ts'

export type Direction = 'store' | 'database'

/**
 * Sets the maximum number of mail contents that move at the same time, because each of them takes up to 35 MB of
 * memory.
 */
const AT_ONCE = 4
/** Sets the maximum number of database rows that one SQL statement of the move reads. */
const WALK = 2_000

/** Lists the database tables that hold contents of mail, each with its primary key. */
const TABLES = [
  { table: 'raw_mails', columns: ['id'], types: ['bigint'], first: ['0'] },
  {
    table: 'message_attachments',
    columns: ['message_row', 'attachment_id'],
    types: ['bigint', 'text'],
    first: ['0', ''],
  },
] as const
type Table = (typeof TABLES)[number]
/** Holds the values of the primary key of one row. */
type Key = string[]

const CONDITION = {
  store: `blob is null and octet_length(bytes) > ${BLOB_BYTES}`,
  database: 'blob is not null',
} satisfies Record<Direction, string>

const keyOf = ({ columns }: Table): string => `(${columns.join(', ')})`
/**
 * Writes the first SQL parameters as an SQL row constructor. The SQL statement compares the primary key of a table with
 * this row constructor.
 */
const given = ({ types }: Table): string =>
  `(${types.map((type, n) => `$${n + 1}::${type}`).join(', ')})`

/**
 * Reports the progress of a move of mail contents between the database and the object store. The field `moved` counts
 * the moved contents. The field `lost` counts the contents whose objects are missing or damaged. The field `tooLarge`
 * counts the contents that stay in the database because the object store does not take objects of their size. The field
 * `seen` is the fraction of the table rows that the move has read, from 0 to 1.
 */
export type Progress = { moved: number; lost: number; tooLarge: number; seen: number }
type Outcome = 'moved' | 'unmoved' | 'tooLarge'

/**
 * Moves mail contents to the object store or back to the database while the service runs. The function updates a row
 * only if its content is still the same as when it was copied. After an early stop, the next call moves the remaining
 * contents. A lost object does not stop the move of the other contents.
 * @throws {BlobsAwayError} if the object store is unavailable.
 */
export async function moveBlobs(
  pool: Pool,
  store: ObjectStore,
  direction: Direction,
  progress: (now: Progress) => void,
): Promise<number> {
  let moved = 0
  let lost = 0
  let tooLarge = 0
  for (const [n, table] of TABLES.entries()) {
    const last = await lastKey(pool, table)
    for (let after: Key | null = [...table.first]; after !== null; ) {
      const page = await walk(pool, table, direction, after)
      await inLanes(page.wanted, async (key) => {
        try {
          const outcome = await moveContent(pool, store, direction, table, key)
          if (outcome === 'moved') moved++
          if (outcome === 'tooLarge') tooLarge++
        } catch (error) {
          if (!(error instanceof LostObjectError)) throw error
          lost++
        }
      })
      after = page.next
      const part = after === null || last === 0 ? 1 : Math.min(1, Number(after[0]) / last)
      progress({ moved, lost, tooLarge, seen: (n + part) / TABLES.length })
    }
  }
  return moved
}

/**
 * Returns the highest value in the first column of a table's primary key. The function returns 0 if the table has no
 * row.
 */
async function lastKey(db: Queryable, { table, columns }: Table): Promise<number> {
  const { rows } = await db.query<{ last: string | null }>(
    `select max(${columns[0]}) as last from ${table}`,
  )
  return Number(rows[0]?.last ?? 0)
}

/**
 * Reads the table rows after a given primary key. @returns the primary keys of rows with a content to move (`wanted`),
 * and the last primary key that was read (`next`). If `next` is null, the table has no more rows.
 */
async function walk(
  db: Queryable,
  table: Table,
  direction: Direction,
  after: Key,
): Promise<{ wanted: Key[]; next: Key | null }> {
  const texts = table.columns.map((column) => `${column}::text`).join(', ')
  const { rows } = await db.query<{ key: Key; wanted: boolean }>(
    `select array[${texts}] as key, ${CONDITION[direction]} as wanted from ${table.table}
     where ${keyOf(table)} > ${given(table)} order by ${table.columns.join(', ')} limit ${WALK}`,
    after,
  )
  return {
    wanted: rows.filter(({ wanted }) => wanted).map(({ key }) => key),
    next: rows.length < WALK ? null : rows.at(-1)!.key,
  }
}

/**
 * Runs the function `work` for several rows at the same time. After `work` has failed for one row, the function starts
 * no further row.
 */
async function inLanes(keys: readonly Key[], work: (key: Key) => Promise<void>) {
  const left = keys.values()
  let failed = false
  const lane = async () => {
    for (const key of left) {
      if (failed) return
      await work(key).catch((error) => {
        failed = true
        throw error
      })
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: AT_ONCE }, lane))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

/**
 * Moves the content of one table row between the database and the object store. @returns `unmoved` if the row is
 * deleted, or if its content was already moved or has changed in the meantime.
 */
async function moveContent(
  db: Queryable,
  store: ObjectStore,
  direction: Direction,
  table: Table,
  key: Key,
): Promise<Outcome> {
  const row = `${keyOf(table)} = ${given(table)}`
  const { rows } = await db.query<StoredContent>(
    `select bytes, blob from ${table.table} where ${row} and ${CONDITION[direction]}`,
    key,
  )
  const before = rows[0]
  if (before === undefined) return 'unmoved'
  const after =
    before.blob === null
      ? { bytes: '', blob: await writeBlob(db, store, before.bytes) }
      : { bytes: await readBlob(db, store, before.blob), blob: null }
  if (before.blob === null && after.blob === null) return 'tooLarge'
  const next = key.length + 1
  const { rowCount } = await db.query(
    `update ${table.table} set bytes = $${next}, blob = $${next + 1}
     where ${row} and blob is not distinct from $${next + 2}::bytea and sha256(bytes) = $${next + 3}`,
    [...key, after.bytes, after.blob, before.blob, sha256(before.bytes)],
  )
  return rowCount === 1 ? 'moved' : 'unmoved'
}
