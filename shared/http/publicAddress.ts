/**
 * Decides which IP addresses the service may reach when it sends a request on a tenant's behalf.
 *
 * The deny list holds the IANA special-purpose address registries (RFC 6890 and successors), multicast, and the IPv6
 * forms of IPv4 addresses. The caller must check the IP address of the actual connection, because DNS can map any name
 * to a private address.
 */

type Prefix = readonly [base: string, bits: number]

const V4_DENIED: readonly Prefix[] = [
  ['0.0.0.0', 8], // "this network", which reaches this host on Linux
  ['10.0.0.0', 8],
  ['100.64.0.0', 10], // carrier NAT, and Alibaba's metadata address
  ['127.0.0.0', 8],
  ['168.63.129.16', 32], // Azure's host agent, inside a public range
  ['169.254.0.0', 16], // link-local, cloud metadata
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4], // reserved, and broadcast
]

/**
 * Holds the range of all global unicast IPv6 addresses (RFC 4291 §2.4). Loopback, fc00::/7, fe80::/10 and 64:ff9b::/96
 * lie outside the global unicast range.
 */
const V6_ALLOWED: Prefix = ['2000::', 3]

const V6_DENIED: readonly Prefix[] = [
  ['2001::', 23], // protocol assignments; Teredo tunnels to any IPv4 address
  ['2001:db8::', 32],
  ['2002::', 16], // 6to4, which holds any IPv4 address
  ['3fff::', 20],
]

const V6_MAPPED: Prefix = ['::ffff:0:0', 96]

/** Matches host names that resolve inside the machine or its network (RFC 6761, RFC 8375). */
const LOCAL_NAME = /(?:^|\.)(?:localhost|local|localdomain|internal|intranet|lan|home\.arpa)$/

function parseV4(text: string): bigint | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)
  if (match === null) return undefined
  let value = 0n
  for (const part of match.slice(1)) {
    // The function refuses a leading zero in an IPv4 address, because some parsers read the part as octal and others as
    // decimal.
    if (Number(part) > 255 || (part.length > 1 && part.startsWith('0'))) return undefined
    value = (value << 8n) | BigInt(part)
  }
  return value
}

function parseV6(text: string): bigint | undefined {
  const zoneless = text.split('%', 1)[0] ?? ''
  if (!/^[0-9a-fA-F:.]+$/.test(zoneless)) return undefined
  const host = `http://[${zoneless}]`
  if (!URL.canParse(host)) return undefined
  // The URL parser has already reduced the IPv6 address to hexadecimal groups and at most one `::`, so a split at `::`
  // is enough.
  const [head = '', tail] = new URL(host).hostname.slice(1, -1).split('::')
  const front = head === '' ? [] : head.split(':')
  const back = tail === undefined || tail === '' ? [] : tail.split(':')
  const groups = [...front, ...Array<string>(8 - front.length - back.length).fill('0'), ...back]
  return groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n)
}

function within(value: bigint, [base, bits]: Prefix, width: 32 | 128): boolean {
  const start = width === 32 ? parseV4(base) : parseV6(base)
  const shift = BigInt(width - bits)
  return start !== undefined && value >> shift === start >> shift
}

function isPublicV4(value: bigint): boolean {
  return !V4_DENIED.some((prefix) => within(value, prefix, 32))
}

function isPublicV6(value: bigint): boolean {
  if (within(value, V6_MAPPED, 128)) return isPublicV4(value & 0xffffffffn)
  if (!within(value, V6_ALLOWED, 128)) return false
  return !V6_DENIED.some((prefix) => within(value, prefix, 128))
}

/**
 * Tells whether an IP address is a public unicast address.
 *
 * @param address is an IPv4 address in four decimal parts, or an IPv6 address, as `dns.lookup` returns it. The function
 * ignores the zone of an IPv6 address (the part after `%`).
 * @returns false for a text that is no IP address, so that the caller refuses to connect.
 */
export function isPublicAddress(address: string): boolean {
  const v4 = parseV4(address)
  if (v4 !== undefined) return isPublicV4(v4)
  const v6 = parseV6(address)
  return v6 !== undefined && isPublicV6(v6)
}

export type HostVerdict = 'public' | 'private' | 'name'

/**
 * Judges the host of a URL without a DNS query.
 *
 * @param url was parsed by `new URL()`. The URL parser turns 0x7f.1, 2130706433, 127.1 and full-width digits into
 * 127.0.0.1, and [::127.0.0.1] into groups of hexadecimal digits.
 * @returns `name` if the host is a name. The caller must then resolve the name by DNS and judge the resulting address.
 */
export function judgeHost(url: URL): HostVerdict {
  const host = url.hostname
  if (host.startsWith('[')) return isPublicAddress(host.slice(1, -1)) ? 'public' : 'private'
  if (parseV4(host) !== undefined) return isPublicAddress(host) ? 'public' : 'private'
  const name = host.replace(/\.$/, '')
  // A host name of a single label resolves only through the machine's search domain. Therefore the name counts as
  // private.
  if (!name.includes('.') || LOCAL_NAME.test(name)) return 'private'
  return 'name'
}
