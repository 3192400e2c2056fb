import { isIP } from 'node:net'

/** Returns the network of an IP address for the rate limits: an IPv4 address, or the /64 network of an IPv6 address. */
export function networkSubject(address: string): string {
  return isIP(address) === 6 ? prefixOf(address, 64) : address
}

/**
 * Returns the networks that contain an IP address, the narrowest first: an IPv4 address, or the /64 network and the /48
 * network of an IPv6 address.
 */
export function networksOf(address: string): string[] {
  return isIP(address) === 6 ? [prefixOf(address, 64), prefixOf(address, 48)] : [address]
}

function prefixOf(address: string, bits: 48 | 64): string {
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail ? tail.split(':') : []
  const zeros = tail === undefined ? [] : Array<string>(8 - left.length - right.length).fill('0')
  return `${[...left, ...zeros, ...right].slice(0, bits / 16).join(':')}::/${bits}`
}
