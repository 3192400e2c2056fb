import { networksOf } from '../../shared/http/networkSubject.ts'

/** An IPv6 client can hold a /48. All of it gets this many times the limit of a /64. */
const WIDE_FACTOR = 4

/** An open connection. */
export type Guest = {
  /** Its address, or /64, then the wider network, if there is one. */
  readonly networks: readonly string[]
  /** performance.now() of its last command, or of its last progress within a message. */
  activeMs: number
  /** Ends the connection with 421. */
  readonly hangUp: (reason: string) => void
}

/**
 * Shares connections between networks. A network has a limit. When the listener is full, a newcomer takes the place of
 * the most idle connection of the network that holds the most.
 */
export class ConnectionLimits {
  readonly #max: number
  readonly #perAddressMax: number
  readonly #guests = new Map<string, Set<Guest>>()
  #count = 0

  constructor(limits: { max: number; perAddressMax: number }) {
    this.#max = limits.max
    this.#perAddressMax = limits.perAddressMax
  }

  /** Admits a connection; null: its network holds too many. A guest needs a `leave`. */
  enter(address: string, hangUp: (reason: string) => void): Guest | null {
    const networks = networksOf(address)
    const isCrowded = networks.some(
      (network, n) => this.#held(network) >= this.#perAddressMax * (n === 0 ? 1 : WIDE_FACTOR),
    )
    if (isCrowded || (this.#count >= this.#max && !this.#makeRoom(networks.at(-1)!))) return null
    const guest = { networks, activeMs: performance.now(), hangUp }
    this.#count++
    for (const network of networks) {
      this.#guests.set(network, (this.#guests.get(network) ?? new Set()).add(guest))
    }
    return guest
  }

  /** Open connections. */
  count = (): number => this.#count

  leave(guest: Guest): void {
    let wasHere = false
    for (const network of guest.networks) {
      const guests = this.#guests.get(network)
      if (guests?.delete(guest)) wasHere = true
      if (guests?.size === 0) this.#guests.delete(network)
    }
    if (wasHere) this.#count--
  }

  #held = (network: string): number => this.#guests.get(network)?.size ?? 0

  /** @returns false: the newcomer's network holds the most itself. */
  #makeRoom(newcomer: string): boolean {
    let greediest = new Set<Guest>()
    for (const guests of this.#guests.values()) if (guests.size > greediest.size) greediest = guests
    if (greediest.size <= this.#held(newcomer) + 1) return false
    const idle = [...greediest].reduce((one, other) =>
      other.activeMs < one.activeMs ? other : one,
    )
    this.leave(idle)
    idle.hangUp('4.7.0 Other clients wait and this connection is idle')
    return true
  }
}
