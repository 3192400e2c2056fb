/**
 * Reads and writes MTA-STS policies (RFC 8461). In such a policy, a domain names the hosts that accept its mail, and
 * promises that each host has a valid TLS certificate.
 */

export const MTA_STS_MODES = ['none', 'testing', 'enforce'] as const

export type MtaStsMode = (typeof MTA_STS_MODES)[number]

/**
 * Describes an MTA-STS policy. The field `mx` lists host names in lower case. The prefix `*.` of a host name stands for
 * exactly one label.
 */
export type MtaStsPolicy = { mode: MtaStsMode; mx: string[] }

/** Sets the number of seconds for which senders keep this service's MTA-STS policy. RFC 8461 §3.2 recommends weeks. */
const MAX_AGE_S = 604_800

/**
 * Returns the policy id in the TXT record at `_mta-sts.DOMAIN`. @returns null if the domain has no MTA-STS record, or
 * has several MTA-STS records (RFC 8461 §3.1).
 */
export function policyIdOf(records: readonly string[]): string | null {
  const own = records.filter((record) => /^v=STSv1\s*;/.test(record))
  const [, id] = /;\s*id=([A-Za-z0-9]{1,32})\s*(?:;|$)/.exec(own.length === 1 ? own[0]! : '') ?? []
  return id ?? null
}

/** Tells whether an MTA-STS policy allows a host to receive mail (RFC 8461 §4.1). */
export function allowsHost({ mx }: Pick<MtaStsPolicy, 'mx'>, name: string): boolean {
  const host = name.toLowerCase().replace(/\.$/, '')
  const parent = host.slice(host.indexOf('.') + 1)
  return mx.some((one) => one === host || (host.includes('.') && one === `*.${parent}`))
}

/** Writes this service's MTA-STS policy as the text of /.well-known/mta-sts.txt. */
export const policyText = ({ mode, mx }: MtaStsPolicy): string =>
  [
    'version: STSv1',
    `mode: ${mode}`,
    ...mx.map((host) => `mx: ${host}`),
    `max_age: ${MAX_AGE_S}`,
    '',
  ].join('\r\n')
