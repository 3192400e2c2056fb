/** Reads the earlier payments of a project: the payees of each host, and the prices of each URL path. */
import type { Queryable } from '../../db.ts'

/**
 * Describes where and to whom a purchase paid: host, path, tool and payee. The field `row` is the row number of the
 * purchase in the database table. A later purchase has a greater row number.
 */
export type PaidPlace = {
  row: bigint
  host: string
  path: string
  tool: string | null
  payTo: string
}

/**
 * Describes the base price of a URL path at a seller. The service compares later prices with it to find how much they
 * have risen.
 */
export type Base = { atomic: bigint; at: Date }

type Last = { row: bigint; amountAtomic: bigint; base: Base }

export type PaidBefore = {
  hostIsKnown(place: PaidPlace): boolean
  payeeIsKnown(place: PaidPlace): boolean
  /**
   * Returns the base price for the next payment. It is the lowest price that the project has paid, until this price is
   * 30 days old. After that, the last paid price becomes the base price.
   */
  baseOf(place: PaidPlace, amountAtomic: bigint, now: Date): Base
  /**
   * Adds a newly signed payment to the earlier payments. Therefore the decision about the next payment in the same batch
   * of jobs also counts the added payment.
   */
  note(place: PaidPlace, amountAtomic: bigint, base: Base): void
}

const BASE_AGE_MS = 30 * 24 * 3_600_000

/**
 * Reads the earlier payments of a project at the given hosts and resources. The caller must have locked the project's
 * purse.
 */
export async function readPaidBefore(
  db: Queryable,
  projectId: string,
  places: readonly PaidPlace[],
): Promise<PaidBefore> {
  const { rows } = await db.query<{
    n: number
    any: boolean
    known: boolean
    row: string | null
    amount: string | null
    base: string | null
    base_at: Date | null
  }>({
    name: 'remembered-payments',
    text: `select w.n::int,
             exists (select from purchases where project_id = $1 and host = w.host and money <> 'released') as any,
             exists (select from purchases where project_id = $1 and host = w.host and money <> 'released' and pay_to = w.pay_to)
               as known,
             l.row, l.amount_atomic as amount, l.base_atomic as base, l.base_at
           from unnest($2::text[], $3::text[], $4::text[], $5::text[]) with ordinality w (host, path, pay_to, tool, n)
           left join lateral (
             select row, amount_atomic, base_atomic, base_at from purchases
             where project_id = $1 and host = w.host and path = w.path and tool is not distinct from w.tool
               and money <> 'released'
             order by row desc limit 1) l on true`,
    values: [
      projectId,
      ...(['host', 'path', 'payTo', 'tool'] as const).map((name) => places.map((one) => one[name])),
    ],
  })
  const hosts = new Set<string>()
  const payees = new Set<string>()
  const last = new Map<string, Last>()
  for (const { n, any, known, row, amount, base, base_at: at } of rows) {
    const place = places[n - 1]!
    if (any) hosts.add(place.host)
    if (known) payees.add(payeeKey(place))
    if (row === null || amount === null || base === null || at === null) continue
    last.set(pathKey(place), {
      row: BigInt(row),
      amountAtomic: BigInt(amount),
      base: { atomic: BigInt(base), at },
    })
  }
  return {
    hostIsKnown: ({ host }) => hosts.has(host),
    payeeIsKnown: (place) => payees.has(payeeKey(place)),
    baseOf(place, amountAtomic, now) {
      const before = last.get(pathKey(place))
      if (before === undefined || amountAtomic <= before.base.atomic) {
        return { atomic: amountAtomic, at: now }
      }
      const isOld = now.getTime() - before.base.at.getTime() > BASE_AGE_MS
      return isOld ? { atomic: before.amountAtomic, at: now } : before.base
    },
    note(place, amountAtomic, base) {
      hosts.add(place.host)
      payees.add(payeeKey(place))
      const before = last.get(pathKey(place))
      if (before === undefined || before.row < place.row) {
        last.set(pathKey(place), { row: place.row, amountAtomic, base })
      }
    },
  }
}

const payeeKey = ({ host, payTo }: PaidPlace): string => JSON.stringify([host, payTo])
const pathKey = ({ host, path, tool }: PaidPlace): string => JSON.stringify([host, path, tool])
