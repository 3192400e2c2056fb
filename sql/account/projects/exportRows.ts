/** Reads the rows of a project's export section by section. The export reads each section in the order of an index. */
import type { Queryable } from '../../db.ts'
import { MESSAGES, SECTIONS, type Section } from './exportSections.ts'

/** Describes one line of a project's export. The field `kind` names the section of the export. */
export type ExportedRow = { kind: string } & Record<string, unknown>

const PAGE = 200
/**
 * Sets the maximum number of bytes of mail that one query of the export reads. A query reads at least one message, even
 * if the message is larger than PAGE_BYTES.
 */
const PAGE_BYTES = 8 * 1024 * 1024

const columns = ({ fields }: Section): string =>
  Object.entries(fields)
    .map(([name, expression]) => `${expression} as "${name}"`)
    .join(', ')

/**
 * Writes the SQL query for one page of an export's section. The page begins after a given row in the order of the
 * section. The parameters of the query are $1 (the project), $2 (the time of the given row) and $3 (the row number of
 * the given row).
 */
function pageOf(section: Section): string {
  const { from, age, condition = '', page = PAGE } = section
  return `select ${columns(section)}, x.${age} as "_at", x.row as "_row" from ${from}
    where x.project_id = $1 and (x.${age}, x.row) > ($2::timestamptz, $3::bigint) ${condition}
    order by x.${age}, x.row limit ${page}`
}

/**
 * Selects a page of messages. The SQL limits the bytes of a page, because a page of the largest messages would have
 * gigabytes.
 */
const MESSAGE_PAGE = `
  with page as (
    select row, sum(stored_bytes) over (order by created_at, row) - stored_bytes as bytes_before from (
      select row, created_at, stored_bytes from messages
      where project_id = $1 and (created_at, row) > ($2::timestamptz, $3::bigint)
      order by created_at, row limit ${PAGE}) next
  )
  select ${columns(MESSAGES)}, x.created_at as "_at", x.row as "_row"
  from page join ${MESSAGES.from.replace('messages x', 'messages x on x.row = page.row')}
  where page.bytes_before < ${PAGE_BYTES}
  order by x.created_at, x.row`

type Positioned = Record<string, unknown> & { _at: Date; _row: string }

/** Reads the pages of one section of an export until a page is empty. */
export async function* pages<Row extends { _at: Date; _row: string }>(
  db: Queryable,
  text: string,
  projectId: string,
): AsyncGenerator<Row[]> {
  let at: Date | string = '-infinity'
  let row = '0'
  for (;;) {
    const { rows }: { rows: Row[] } = await db.query<Row>({ text, values: [projectId, at, row] })
    const last: Row | undefined = rows.at(-1)
    if (last === undefined) return
    yield rows
    at = last._at
    row = last._row
  }
}

/** Reads every row of a project's export except the row of the project itself. */
export async function* exportRows(db: Queryable, projectId: string): AsyncGenerator<ExportedRow> {
  const sections = [
    [MESSAGES, MESSAGE_PAGE],
    ...SECTIONS.map((section) => [section, pageOf(section)] as const),
  ] as const
  for (const [{ kind }, text] of sections) {
    for await (const rows of pages<Positioned>(db, text, projectId)) {
      for (const { _at, _row, ...fields } of rows) yield { kind, ...fields }
    }
  }
}
