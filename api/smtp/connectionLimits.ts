import { networkSubject } from '../../shared/http/networkSubject.ts'

/** Bytes of unfinished messages in memory, over all connections. Beyond it a message is answered 452. */
const IN_FLIGHT_MAX_BYTES = 256 * 1024 * 1024
/** The share of one address: room for a message of the largest size and one more. */
const IN_FLIGHT_SHARE_BYTES = IN_FLIGHT_MAX_BYTES / 4

/** Limits per client address (IPv6: its /64): one client must not use up the connections and the memory of all. */
export class ConnectionLimits {
  readonly #perAddressMax: number
  readonly #connections = new Tally()
  readonly #bytes = new Tally()

  constructor(perAddressMax: number) {
    this.#perAddressMax = perAddressMax
  }

  /** Counts a connection; false when its address has too many. Every call needs a call of `leave`. */
  enter(address: string): boolean {
    return this.#connections.add(address, 1) <= this.#perAddressMax
  }

  leave(address: string): void {
    this.#connections.add(address, -1)
  }

  /** Counts bytes in memory; false when its address, or all together, hold too many. Every byte needs a `release`. */
  hold(address: string, bytes: number): boolean {
    const share = this.#bytes.add(address, bytes)
    return share <= IN_FLIGHT_SHARE_BYTES && this.#bytes.total <= IN_FLIGHT_MAX_BYTES
  }

  release(address: string, bytes: number): void {
    this.#bytes.add(address, -bytes)
  }
}

/** Sums by client address. */
class Tally {
  total = 0
  readonly #byAddress = new Map<string, number>()

  /** @returns the sum of this address. */
  add(address: string, amount: number): number {
    const subject = networkSubject(address)
    const sum = (this.#byAddress.get(subject) ?? 0) + amount
    this.total += amount
    if (sum > 0) this.#byAddress.set(subject, sum)
    else this.#byAddress.delete(subject)
    return sum
  }
}
