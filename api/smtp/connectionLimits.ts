import { workOfGreediest } from '../../shared/fair/greediest.ts'
import { networksOf } from '../../shared/http/networkSubject.ts'

/**
 * A /48 network may have at most this many times the SMTP connections of a /64 network, because one IPv6 client can own
 * a whole /48.
 */
const WIDE_FACTOR = 4

/** Describes an open SMTP connection. */
export type OpenConnection = {
  /**
   * Holds the networks that contain the client's IP address, smallest network first. The networks are the IPv4 address
   * itself, or the /64 and the /48 network of an IPv6 address.
   */
  readonly networks: readonly string[]
  /** Holds the time of the last SMTP command, or of the last bytes of a message, as a value of performance.now(). */
  activeMs: number
  /** Ends the SMTP connection with a 421 reply. */
  readonly hangUp: (reason: string) => void
}

/**
 * Shares the SMTP connections of a listener among the networks of its clients. Each network may have only a limited
 * number of SMTP connections. If the listener has no free SMTP connection, the listener ends an existing connection to
 * admit a new connection. The ended connection is the longest idle connection of the network with the most connections.
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
   * Admits an SMTP connection. Returns `null` if the client's network has too many connections. The caller of `enter`
   * must call `leave` when the SMTP connection ends.
   */
  enter(address: string, hangUp: (reason: string) => void): OpenConnection | null {
    const networks = networksOf(address)
    const isCrowded = networks.some(
      (network, n) => this.#held(network) >= this.#perAddressMax * (n === 0 ? 1 : WIDE_FACTOR),
    )
    if (isCrowded || (this.#count >= this.#max && !this.#makeRoom(networks.at(-1)!))) return null
    const connection = { networks, activeMs: performance.now(), hangUp }
    this.#count++
    for (const network of networks) {
      this.#connections.set(network, (this.#connections.get(network) ?? new Set()).add(connection))
    }
    return connection
  }

  /** Returns the number of open SMTP connections. */
  count = (): number => this.#count

  leave(connection: OpenConnection): void {
    let wasHere = false
    for (const network of connection.networks) {
      const connections = this.#connections.get(network)
      if (connections?.delete(connection)) wasHere = true
      if (connections?.size === 0) this.#connections.delete(network)
    }
    if (wasHere) this.#count--
  }

  #held = (network: string): number => this.#connections.get(network)?.size ?? 0

  /**
   * Ends one SMTP connection to make room for a new connection. @returns false if no network has more connections than
   * the network of the new connection.
   */
  #makeRoom(newcomer: string): boolean {
    const held = ({ networks }: OpenConnection) => Math.max(...networks.map(this.#held))
    const all = new Set([...this.#connections.values()].flatMap((connections) => [...connections]))
    const idle = workOfGreediest(all, { held, rank: ({ activeMs }) => -activeMs })
    if (idle === null || held(idle) <= this.#held(newcomer) + 1) return false
    this.leave(idle)
    idle.hangUp('4.7.0 Other clients wait and this connection is idle')
    return true
  }
}
