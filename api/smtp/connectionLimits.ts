import { rateLimitSubject } from '../clientAddress.ts'

/** What one client may take of the listener: no address may use up what is there for all. */
export class ConnectionLimits {
  readonly #perAddressMax: number
  readonly #open = new Map<string, number>()

  constructor(perAddressMax: number) {
    this.#perAddressMax = perAddressMax
  }

  /** Counts a connection; false where its address (IPv6: its /64) has too many. Every call wants one of `leave`. */
  enter(address: string): boolean {
    const subject = rateLimitSubject(address)
    const open = (this.#open.get(subject) ?? 0) + 1
    this.#open.set(subject, open)
    return open <= this.#perAddressMax
  }

  leave(address: string): void {
    const subject = rateLimitSubject(address)
    const open = (this.#open.get(subject) ?? 0) - 1
    if (open > 0) this.#open.set(subject, open)
    else this.#open.delete(subject)
  }
}
