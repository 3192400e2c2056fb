import type { LookUp } from '../../../workers/mail/lookUp.ts'

/**
 * Holds DNS records by name and type, such as `{ 'example.com TXT': [['v=spf1 -all']] }`. A lookup whose value is an
 * Error fails with this error.
 */
export type Zone = Record<string, unknown[] | Error>

/** Makes a DNS look-up that knows only the records of the given zone. */
export function fakeLookUp(zone: Zone = {}): LookUp {
  return async (name, type) => {
    const records = zone[`${name.toLowerCase()} ${type}`]
    if (records instanceof Error) throw records
    if (records !== undefined) return records as string[]
    throw dnsError('ENOTFOUND')
  }
}

/** Looks up names in a DNS in which this machine may send mail for every domain, and no domain has a DMARC policy. */
export const trustingLookUp: LookUp = async (name, type) => {
  if (type === 'TXT' && !name.includes('._domainkey.') && !name.startsWith('_dmarc.')) {
    return [['v=spf1 ip4:127.0.0.0/8 -all']] as never
  }
  throw dnsError('ENOTFOUND')
}

/** Makes an error in the form in which node:dns throws it. */
export const dnsError = (code: string): Error => Object.assign(new Error(`query ${code}`), { code })
