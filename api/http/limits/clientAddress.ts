import { BlockList, isIP } from 'node:net'

/** Finds the IP address of a client from the socket and X-Forwarded-For. */
export type ClientAddress = (socketAddress: string, forwardedFor: string | null) => string

/**
 * Returns the IP address of a client. Without a trusted proxy, this is the address of the socket. Behind a trusted
 * proxy, it is the rightmost address of X-Forwarded-For that is not a trusted proxy. The client itself can write any
 * address further left.
 * @param trustedProxies are the IP addresses and CIDR ranges of trusted proxies.
 */
export function createClientAddress(trustedProxies: string[]): ClientAddress {
  const trusted = new BlockList()
  for (const range of trustedProxies) {
    const [address = '', bits] = range.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) trusted.addAddress(address, family)
    else trusted.addSubnet(address, Number(bits), family)
  }
  const isTrusted = (address: string) =>
    trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

  return (socketAddress, forwardedFor) => {
    let address = plainAddress(socketAddress)
    if (trustedProxies.length === 0 || forwardedFor === null) return address
    for (const hop of forwardedFor.split(',').reverse()) {
      if (!isTrusted(address)) break
      const next = plainAddress(withoutPort(hop.trim()))
      if (isIP(next) === 0) break
      address = next
    }
    return address
  }
}

/**
 * Removes the prefix of an IPv4-mapped address, because a dual-stack socket shows an IPv4 address as ::ffff:a.b.c.d.
 */
const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

/** Matches an IPv4 address with or without a port, or an IPv6 address in brackets. */
const WITH_PORT = /^(?:(\d+(?:\.\d+){3})|\[([\da-f:.]+)\])(?::\d{1,5})?$/i

/** Removes the client's port, which Azure Application Gateway and IIS append to the address. */
function withoutPort(hop: string): string {
  const [, ipv4, ipv6] = WITH_PORT.exec(hop) ?? []
  return ipv4 ?? ipv6 ?? hop
}
