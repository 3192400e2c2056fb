import type { Row } from './measure.ts'
import { addInboxes, drain, inbound } from './scale.ts'
import { createSetting, type Setting } from './setting.ts'

/**
 * Sets the smallest fraction of the write-ahead log (WAL) that a table or index must cause to get a separate row in the
 * benchmark table.
 */
const SHARE_MIN = 0.01

/**
 * Measures how much write-ahead log (WAL) the parsing and storing of mails causes. Some rows show the full-page images
 * after a checkpoint and the changes of each table and index. Other rows show the same WAL by record type, because an
 * update that moves a row to another page (`Heap UPDATE`) also writes to each index. Each row shows the KB of WAL for
 * each mail, and the fraction of all WAL. In the run with one inbox, the search index of this inbox is built at the
 * same time.
 */
export async function* walRows(setting: Setting): AsyncGenerator<Row> {
  yield* rowsOf(setting, '200 inboxes', await addInboxes(setting))
  // The second run of the benchmark uses a new database. In the old database, VACUUM would write the pages of the first
  // run again during the measurement.
  await using other = await createSetting()
  yield* rowsOf(other, 'one inbox', (await addInboxes(other)).slice(0, 1))
}

async function* rowsOf(setting: Setting, where: string, inboxes: string[]): AsyncGenerator<Row> {
  const { pool } = setting
  await pool.query('create extension if not exists pg_walinspect')
  const work = inbound(setting, 'WAL', inboxes)
  const lsn = async () =>
    (await pool.query('select pg_current_wal_lsn() as at')).rows[0].at as string
  let from = ''
  const fill = async () => {
    await work.fill()
    await pool.query('checkpoint')
    from = await lsn()
  }
  const { databaseMs, oursMs } = await drain(setting, { ...work, fill }, 1)
  const until = await lsn()
  const { rows } = await pool.query<{ name: string; kind: string; kb: number }>(
    // Each WAL record counts for the table or index to which the first block of the record belongs.
    `with records as (
       select coalesce(min(c.relname) filter (where b.block_id = 0), 'other') as name,
         min(b.record_length) as bytes, sum(b.block_fpi_length) as images,
         min(b.resource_manager || ' ' || b.record_type) as type
       from pg_get_wal_block_info($1, $2) b left join pg_class c on c.relfilenode = b.relfilenode
       group by b.start_lsn
     ), sums as (
       select name, 'images' as kind, sum(images) as bytes from records group by name
       union all select name, 'changes', sum(bytes - images) from records group by name
       union all select type, 'records', sum(bytes) from records group by type
     )
     select name, kind, bytes::float8 / 1024 / $3 as kb from sums where bytes > 0 order by bytes desc`,
    [from, until, work.count],
  )
  const all = rows.reduce((sum, { kind, kb }) => sum + (kind === 'records' ? 0 : kb), 0)
  const rowOf = (name: string, kb: number): Row => ({
    name: `${where}, ${name}`,
    unit: 'KB',
    ours: kb,
    baseline: all,
    ratio: kb / all,
    detail: `all WAL of a mail of 4 KB; CPU: ${databaseMs.toFixed(2)} ms database, ${oursMs.toFixed(2)} ms workers`,
  })
  for (const kind of ['images', 'changes', 'records']) {
    const of = rows.filter((row) => row.kind === kind)
    yield rowOf(
      kind,
      of.reduce((sum, { kb }) => sum + kb, 0),
    )
    for (const { name, kb } of of) if (kb / all >= SHARE_MIN) yield rowOf(`${kind}: ${name}`, kb)
  }
}
