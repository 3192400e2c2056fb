/** Reads the rows of a project's export section by section. The export reads each section in the order of an index. */
import type { Queryable } from '../../db.ts'
import { MESSAGES } from './exportMailSections.ts'
import type { Order, Section } from './exportSection.ts'
import { SECTIONS } from './exportSections.ts'

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
 * Maps each SQL type to the value after which the first page begins. This value sorts before the value of every row.
 */
const FIRST: Record<Order[string], string> = {
  timestamptz: '-infinity',
  bigint: '0',
  bytea: '\\x',
  text: '',
}

/**
 * Writes the end of an SQL query for one page of a section of the export. The page begins with the next row after a
 * given row, in the order of the section. The query's parameters are $1 (the project), and from $2 on the values of the
 * given row.
 */
const after = (order: Order): string =>
  `(${Object.keys(order).join(', ')}) > (${Object.values(order)
    .map((type, place) => `$${place + 2}::${type}`)
    .join(', ')})`

/** Writes the SQL expression for the position of a row in the order of its section of the export. */
const placeOf = (order: Order): string =>
  `array[${Object.keys(order)
    .map((expression) => `${expression}::text`)
    .join(', ')}] as "_place"`

export function pageOf(section: Section): string {
  const { from, order, condition = '', page = PAGE } = section
  return `select ${columns(section)}, ${placeOf(order)} from ${from}
    where x.project_id = $1 and ${after(order)} ${condition}
    order by ${Object.keys(order).join(', ')} limit ${page}`
}

/**
 * Selects a page of messages. The SQL limits the bytes of a page, because a page of the largest messages would have
 * gigabytes.
 */
const MESSAGE_PAGE = `
  with page as (
    select row, sum(stored_bytes) over (order by created_at, row) - stored_bytes as bytes_before from (
      select row, created_at, stored_bytes from messages x
      where project_id = $1 and ${after(MESSAGES.order)}
      order by created_at, row limit ${PAGE}) next
  )
  select ${columns(MESSAGES)}, ${placeOf(MESSAGES.order)}
  from page join ${MESSAGES.from.replace('messages x', 'messages x on x.row = page.row')}
  where page.bytes_before < ${PAGE_BYTES}
  order by x.created_at, x.row`

type Placed = Record<string, unknown> & { _place: string[] }

/** Reads the pages of one section of an export until a page is empty. */
export async function* pages<Row extends { _place: string[] }>(
  db: Queryable,
  { text, order }: { text: string; order: Order },
  projectId: string,
): AsyncGenerator<Row[]> {
  let place: string[] = Object.values(order).map((type) => FIRST[type])
  for (;;) {
    const { rows }: { rows: Row[] } = await db.query<Row>({ text, values: [projectId, ...place] })
    const last: Row | undefined = rows.at(-1)
    if (last === undefined) return
    yield rows
    place = last._place
  }
}

/** Reads every row of a project's export except the row of the project itself. */
export async function* exportRows(db: Queryable, projectId: string): AsyncGenerator<ExportedRow> {
  const sections = [
    [MESSAGES, MESSAGE_PAGE],
    ...SECTIONS.map((section) => [section, pageOf(section)] as const),
  ] as const
  for (const [{ kind, order }, text] of sections) {
    for await (const rows of pages<Placed>(db, { text, order }, projectId)) {
      for (const { _place, ...fields } of rows) yield { kind, ...fields }
    }
  }
}
