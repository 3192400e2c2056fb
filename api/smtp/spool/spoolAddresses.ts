import type { Database } from 'bun:sqlite'

/**
 * Sets the maximum number of inbox addresses that the process keeps in memory, because each look-up in the spool's file
 * would take locks and read the file's header.
 */
const KNOWN_MAX = 10_000

/**
 * Keeps a copy of the inbox addresses in the database file of the spool. The listener reads this copy while PostgreSQL
 * is unreachable.
 */
export class SpoolAddresses {
  readonly #db: Database
  readonly #known = new Set<string>()

  constructor(db: Database) {
    this.#db = db
    db.run('create table if not exists addresses (address text primary key) without rowid')
  }

  /**
   * Returns the first given address that is in the local copy of the inbox addresses. The given addresses are in lower
   * case.
   */
  find(addresses: string[]): string | null {
    const known = addresses.find((address) => this.#known.has(address) || this.#isInFile(address))
    if (known === undefined) return null
    if (this.#known.size >= KNOWN_MAX) this.#known.clear()
    this.#known.add(known)
    return known
  }

  #isInFile(address: string): boolean {
    return (
      this.#db
        .query<{ address: string }, { address: string }>(
          'select address from addresses where address = $address',
        )
        .get({ address }) !== null
    )
  }

  /** Applies a change to the local copy of the inbox addresses. */
  update({ add = [], remove = [] }: { add?: string[]; remove?: string[] }): void {
    for (const address of remove) this.#known.delete(address)
    this.#db.transaction(() => {
      this.#db
        .query('delete from addresses where address in (select value from json_each($list))')
        .run({ list: JSON.stringify(remove) })
      this.#db
        .query('insert or ignore into addresses select value from json_each($list)')
        .run({ list: JSON.stringify(add) })
    })()
  }

  /**
   * Replaces a range of the local copy of the inbox addresses: all addresses after `after`, up to and including `upTo`.
   * If `upTo` is `null`, the range ends at the last address in alphabetical order.
   */
  replace(range: { after: string; upTo: string | null; addresses: string[] }): void {
    this.#known.clear()
    this.#db.transaction(() => {
      this.#db
        .query(
          'delete from addresses where address > $after and ($upTo is null or address <= $upTo)',
        )
        .run({ after: range.after, upTo: range.upTo })
      this.update({ add: range.addresses })
    })()
  }
}
