/** Describes which rows and columns a section of a project's export contains. */

/**
 * Maps SQL expressions to their SQL types. Together, the values of the expressions identify one row of a section of the
 * export.
 */
export type Order = Readonly<Record<string, 'timestamptz' | 'bigint' | 'bytea' | 'text'>>

/** Orders the rows of a section of the export by a time, and rows of the same time by their row number. */
export const byAge = (column: string): Order => ({
  [`x.${column}`]: 'timestamptz',
  'x.row': 'bigint',
})

/** Describes the rows of one kind in a project's export. */
export type Section = {
  kind: string
  /**
   * Holds the SQL text after `from`: the table of the export's section with the alias `x`, and the joins of the
   * section.
   */
  from: string
  /**
   * Holds the SQL expressions by which the export orders the rows of a section, with their SQL types. A section that
   * can be long has an index in this order. Without it, the query for each page would sort the whole section.
   */
  order: Order
  /** Maps each field of an exported row to an SQL expression. */
  fields: Readonly<Record<string, string>>
  /**
   * Holds an additional SQL condition for the rows of the export's section, which starts with `and`. The condition may
   * name the parameters of the order, which begin with $2.
   */
  condition?: string
  /** Holds the maximum number of rows that one query reads from a section of the export. */
  page?: number
}
