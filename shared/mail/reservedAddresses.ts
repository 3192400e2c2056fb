/** Mail to these names is for the operator: people write to them (RFC 2142), and reports come there. */
const RESERVED_NAMES = ['dmarc', 'tlsrpt', 'postmaster', 'abuse', 'hostmaster'] as const

/** Where the DNS records of our domains have reports sent to. */
export const reportAddresses = (mailDomain: string): string[] =>
  ['dmarc', 'tlsrpt'].map((name) => `${name}@${mailDomain}`)

/** The addresses at the service's own domain that no project may take. */
export const reservedAddresses = (mailDomain: string): string[] =>
  RESERVED_NAMES.map((name) => `${name}@${mailDomain}`)
