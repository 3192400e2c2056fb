/**
 * Lists the local parts of the mail addresses that are reserved for the operator. People write to these addresses (RFC
 * 2142), and other mail hosts send aggregate reports to them. The service sends sign-in links and approval links from
 * `no-reply`. A project with this address could forge such mail, and read the replies to it.
 */
const RESERVED_NAMES = ['dmarc', 'tlsrpt', 'postmaster', 'abuse', 'hostmaster', 'no-reply'] as const

/** Returns the addresses to which the DNS records of the service's domains direct aggregate reports. */
export const reportAddresses = (mailDomain: string): string[] =>
  ['dmarc', 'tlsrpt'].map((name) => `${name}@${mailDomain}`)

/**
 * Maps the mail addresses of the operator to the inboxes that get their mail. Mail for postmaster, with or without the
 * domain, reaches the operator (RFC 5321 §4.5.1). The operator also receives the reports that the DNS records of this
 * service request.
 * @param postmaster is the operator's inbox. If `postmaster` is undefined, the operator has no inbox.
 */
export function postmasterAliases({
  mailDomain,
  postmaster,
}: {
  mailDomain: string
  postmaster?: string | undefined
}): Map<string, string[]> {
  const own = `postmaster@${mailDomain}`
  const others = postmaster === undefined ? [] : [postmaster]
  return new Map([
    ['postmaster', [own, ...others]],
    ...[own, ...reportAddresses(mailDomain)].map((name): [string, string[]] => [name, others]),
  ])
}

/** Returns the addresses at the service's own domain that no project may take. */
export const reservedAddresses = (mailDomain: string): string[] =>
  RESERVED_NAMES.map((name) => `${name}@${mailDomain}`)
