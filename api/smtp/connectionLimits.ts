import { workOfGreediest } from '../../shared/fair/greediest.ts'
import { networkSharers, type Sharer } from './sharers.ts'

/** Describes an open SMTP connection. */
export type OpenConnection = {
  /**
   * Holds the networks or inboxes whose connection limits apply to this connection. At first, these are the client's
   * networks.
   */
  sharers: readonly Sharer[]
  /** Holds the time of the last SMTP command, or of the last bytes of a message, as a value of performance.now(). */
  activeMs: number
  /** Ends the SMTP connection with a 421 reply. */
  readonly hangUp: (reason: string) => void
}

/**
 * Shares the SMTP connections of a listener among the networks of its clients. Each network may have only a limited
 * number of connections. If no connection is free, the listener ends one to admit a new one. It chooses the longest
 * idle connection of the network with the most connections.
 */
export class ConnectionLimits {
  readonly #max: number
  readonly #perAddressMax: number
  readonly #connections = new Map<string, Set<OpenConnection>>()
  #count = 0

  constructor(limits: { max: number; perAddressMax: number }) {
    this.#max = limits.max
    this.#perAddressMax = limits.perAddressMax
  }

  /**
   * Admits an SMTP connection. Returns `null` if the client's network has too many connections. When the connection
   * ends, the caller must call `leave`.
   */
  enter(address: string, hangUp: (reason: string) => void): OpenConnection | null {
    const sharers = networkSharers(address)
    if (!sharers.every((sharer) => this.#hasRoom(sharer))) return null
    if (this.#count >= this.#max && !this.#makeRoom(sharers.at(-1)!)) return null
    const connection = { sharers, activeMs: performance.now(), hangUp }
    this.#add(connection)
    return connection
  }

  /**
   * Counts an open connection in the limits of the given networks or inboxes, and no longer in its earlier ones. A
   * connection of a mail service first counts for the network of the mail service, and later for the receiving inboxes.
   * @returns those networks or inboxes that may have another connection. The connection counts only for them. If there
   * is none, the caller ends the connection.
   */
  countAs(connection: OpenConnection, sharers: readonly Sharer[]): readonly Sharer[] {
    const isOpen = this.#remove(connection)
    const free = sharers.filter((sharer) => this.#hasRoom(sharer))
    if (free.length > 0) connection.sharers = free
    if (isOpen) this.#add(connection)
    return free
  }

  /** Returns the number of open SMTP connections. */
  count = (): number => this.#count

  leave(connection: OpenConnection): void {
    this.#remove(connection)
  }

  #add(connection: OpenConnection): void {
    this.#count++
    for (const { name } of connection.sharers) {
      this.#connections.set(name, (this.#connections.get(name) ?? new Set()).add(connection))
    }
  }

  /** Removes a connection from the counts. @returns false if the connection has left already. */
  #remove(connection: OpenConnection): boolean {
    let wasHere = false
    for (const { name } of connection.sharers) {
      const connections = this.#connections.get(name)
      if (connections?.delete(connection)) wasHere = true
      if (connections?.size === 0) this.#connections.delete(name)
    }
    if (wasHere) this.#count--
    return wasHere
  }

  #hasRoom = (sharer: Sharer): boolean => this.#held(sharer) < this.#perAddressMax * sharer.factor

  #held = ({ name }: Sharer): number => this.#connections.get(name)?.size ?? 0

  /**
   * Ends one SMTP connection to make room for a new one. @returns false if no network has more connections than the
   * network of the new connection.
   */
  #makeRoom(newcomer: Sharer): boolean {
    const held = ({ sharers }: OpenConnection) => Math.max(...sharers.map(this.#held))
    const all = new Set([...this.#connections.values()].flatMap((connections) => [...connections]))
    const idle = workOfGreediest(all, { held, rank: ({ activeMs }) => -activeMs })
    if (idle === null || held(idle) <= this.#held(newcomer) + 1) return false
    this.leave(idle)
    idle.hangUp('4.7.0 Other clients wait and this connection is idle')
    return true
  }
}
