/**
 * Names the purpose of a DNS record of a mail domain. Some records route the domain's mail to this service. Others
 * authenticate the mail that the domain sends.
 */

import { isVersioned } from './versionedText.ts'

type RecordPurpose = 'ownership' | 'mx' | 'dkim' | 'spf' | 'dmarc'

export type DomainRecord = {
  purpose: RecordPurpose
  type: 'TXT' | 'MX'
  name: string
  value: string
  /** Holds the preference of an MX record. Null means that the DNS record is no MX record. */
  priority: number | null
  /** Tells whether the verification of a domain requires this DNS record. */
  required: boolean
}

/** Describes the result of a check of one DNS record. */
export type Finding = { status: 'ok' | 'missing' | 'mismatch' | 'unknown'; detail: string }
export type Findings = Partial<Record<RecordPurpose, Finding>>

export type DomainClaim = {
  domain: string
  token: string
  /** Holds the selector and the DNS record of the newest DKIM key. */
  dkimSelector: string
  dkimRecord: string
  /** Holds the previous DKIM key, which also signs the mail of the domain. Null means that the domain has only one. */
  previousDkim?: { selector: string; record: string } | null
}

const MX_PRIORITY = 10
const OWNERSHIP_PREFIX = '_purser'

/**
 * Lists the DNS records that the owner of a domain has to set. The parameter `mailDomain` is the service's own mail
 * domain. The SPF record of `mailDomain` lists the hosts that send mail.
 */
export function domainRecords(
  { domain, token, dkimSelector, dkimRecord }: DomainClaim,
  { mailDomain, mailHostname }: { mailDomain: string; mailHostname: string },
): DomainRecord[] {
  const txt = (purpose: RecordPurpose, name: string, value: string, required: boolean) =>
    ({ purpose, type: 'TXT', name, value, priority: null, required }) as const
  return [
    txt('ownership', `${OWNERSHIP_PREFIX}.${domain}`, `purser-verification=${token}`, true),
    {
      purpose: 'mx',
      type: 'MX',
      name: domain,
      value: mailHostname,
      priority: MX_PRIORITY,
      required: true,
    },
    txt('dkim', `${dkimSelector}._domainkey.${domain}`, dkimRecord, true),
    txt('spf', domain, `v=spf1 include:${mailDomain} ~all`, false),
    txt('dmarc', `_dmarc.${domain}`, 'v=DMARC1; p=none', false),
  ]
}

/**
 * Returns the DNS records that prove a DKIM key of the domain, the newest first. One of them is enough, because both keys
 * sign the mail of the domain while the owner of the domain replaces the record.
 */
export function dkimRecords(
  claim: DomainClaim,
  settings: { mailDomain: string; mailHostname: string },
): DomainRecord[] {
  const { previousDkim = null } = claim
  const previous = previousDkim && {
    ...claim,
    dkimSelector: previousDkim.selector,
    dkimRecord: previousDkim.record,
  }
  return [claim, ...(previous === null ? [] : [previous])].flatMap((one) =>
    domainRecords(one, settings).filter(({ purpose }) => purpose === 'dkim'),
  )
}

/**
 * Returns one finding for several DNS records of which one correct record is enough. The finding is about a correct
 * record if there is one, else about a record whose name server did not answer, else about the first record.
 */
export const findingOfAny = (findings: readonly Finding[]): Finding =>
  findings.find(({ status }) => status === 'ok') ??
  findings.find(({ status }) => status === 'unknown') ??
  findings[0]!

/**
 * Compares a required DNS record with the TXT records or mail exchangers that DNS returned for the name of the record.
 */
export function judgeRecord({ purpose, value }: DomainRecord, found: readonly string[]): Finding {
  switch (purpose) {
    case 'ownership':
      return judge(found, [value], (text) => text.trim() === value)
    case 'mx':
      return judge(found, [value], (name) => plain(name) === plain(value))
    case 'dkim':
      // Only the key in a DKIM record counts, because some DNS panels add spaces to a DKIM record or omit the version.
      return judge(found.filter(isDkim), [value], (text) => tag(text, 'p') === tag(value, 'p'))
    case 'spf': {
      const include = value.split(' ')[1]!
      return judgeOnly(textsOf(found, 'spf1'), [include], (text) =>
        text
          .toLowerCase()
          .split(/\s+/)
          .some((term) => term.replace(/^\+/, '') === include),
      )
    }
    case 'dmarc':
      return judgeOnly(textsOf(found, 'DMARC1'), ['v=DMARC1'], () => true)
  }
}

const textsOf = (found: readonly string[], version: string): string[] =>
  found.filter((text) => isVersioned(text, version))
const isDkim = (text: string): boolean => tag(text, 'p') !== ''
const plain = (name: string): string => name.toLowerCase().replace(/\.$/, '')

const tag = (text: string, name: string): string =>
  new RegExp(`(?:^|;)\\s*${name}\\s*=([^;]*)`, 'i').exec(text)?.[1]?.replace(/\s+/g, '') ?? ''

function judge(
  found: readonly string[],
  [wanted]: [string],
  fits: (text: string) => boolean,
): Finding {
  if (found.length === 0) return { status: 'missing', detail: 'no such record' }
  if (found.some(fits)) return { status: 'ok', detail: 'found' }
  return { status: 'mismatch', detail: `found ${found.length}, none with ${wanted.slice(0, 100)}` }
}

/**
 * Judges a DNS record that must be the only one of its kind. If a domain has two SPF records (RFC 7208 §4.5) or two
 * DMARC records (RFC 9989 §4.10), receivers use none of them.
 */
const judgeOnly: typeof judge = (found, wanted, fits) =>
  found.length > 1
    ? { status: 'mismatch', detail: `found ${found.length} instead of one` }
    : judge(found, wanted, fits)

/** Holds the finding about a DNS record if the name servers did not respond. */
export const UNKNOWN: Finding = { status: 'unknown', detail: 'the name servers did not answer' }

/**
 * Tells from the findings about its DNS records whether a mail domain is verified. The verdict `wanting` means that a
 * required DNS record is missing or wrong. The verdict `unknown` means that a DNS query got no response.
 */
export function verdictOf(
  records: readonly DomainRecord[],
  findings: Findings,
): 'verified' | 'wanting' | 'unknown' {
  const required = records.filter((record) => record.required)
  const states = required.map(({ purpose }) => findings[purpose]?.status ?? 'unknown')
  if (states.some((status) => status === 'missing' || status === 'mismatch')) return 'wanting'
  return states.includes('unknown') ? 'unknown' : 'verified'
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/**
 * Sets for how long required DNS records may be missing before a domain's verification fails, because a DNS outage of
 * one night must not make the verification fail.
 */
const PATIENCE_MS = 72 * HOUR_MS
const RECHECK_MS = 24 * HOUR_MS

export type DomainStatus = 'pending' | 'verified' | 'failed'

/**
 * Returns the status of a domain after a check, and the delay until the next check. A null delay means that the
 * verification has failed, and that the service checks the domain again only on request.
 * @param wantingMs is the time in milliseconds since a check first missed a required DNS record. The value 0 means that
 * no required record is missing.
 */
export function afterCheck(
  before: DomainStatus,
  verdict: 'verified' | 'wanting' | 'unknown',
  wantingMs: number,
): { status: DomainStatus; recheckMs: number | null } {
  if (verdict === 'verified') return { status: 'verified', recheckMs: RECHECK_MS }
  if (verdict === 'wanting' && wantingMs >= PATIENCE_MS)
    return { status: 'failed', recheckMs: null }
  // The first checks of a domain are frequent, because its owner may have just set the DNS records and wait for the
  // result.
  const recheckMs = Math.min(Math.max(wantingMs, MINUTE_MS), HOUR_MS)
  return { status: before, recheckMs: before === 'failed' ? null : recheckMs }
}
