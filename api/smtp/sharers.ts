import { networksOf } from '../../shared/http/networkSubject.ts'

/**
 * Sets how many times the limit of a /64 network a /48 network may use, because one IPv6 client can own a whole /48.
 */
const WIDE_FACTOR = 4

/**
 * Describes a network of clients, or an inbox that gets mail from a mail service. The listener limits the connections
 * and bytes of each of them.
 */
export type Sharer = {
  readonly name: string
  /** Holds the factor by which the limits of this network or inbox exceed those of an ordinary one. */
  readonly factor: number
}

/**
 * Returns the networks that contain a client's IP address, the narrowest first. The listener limits the connections and
 * bytes of each of these networks.
 */
export const networkSharers = (address: string): Sharer[] =>
  networksOf(address).map((name, n) => ({ name, factor: n === 0 ? 1 : WIDE_FACTOR }))

/**
 * Returns a receiving inbox, so that the listener limits its connections and bytes. A mail service delivers everybody's
 * mail from one address. Therefore the inboxes count in place of its network, and much mail to one inbox delays no
 * other inbox.
 */
export const inboxSharer = (inbox: string): Sharer => ({
  name: `mail service to ${inbox}`,
  factor: 1,
})
