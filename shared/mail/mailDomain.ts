/**
 * Names what a DNS record of a mail domain is for. Some records route the domain's mail here, and others authenticate
 * its sent mail.
 */

type RecordPurpose = 'ownership' | 'mx' | 'dkim' | 'spf' | 'dmarc'

export type DomainRecord = {
  purpose: RecordPurpose
  type: 'TXT' | 'MX'
  name: string
  value: string
  /** Is the preference of an MX record; null for other types. */
  priority: number | null
  /** Tells whether verification requires this record. */
  required: boolean
}

/** Is the result of a check of one record. */
export type Finding = { status: 'ok' | 'missing' | 'mismatch' | 'unknown'; detail: string }
export type Findings = Partial<Record<RecordPurpose, Finding>>

export type DomainClaim = {
  domain: string
  token: string
  dkimSelector: string
  dkimRecord: string
}

const MX_PRIORITY = 10
const OWNERSHIP_PREFIX = '_purser'

/** Lists the records to set. `mailDomain` is the service's own domain. Its SPF record lists the sending hosts. */
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

/** Judges a record by the TXT records or mail exchangers found at its name. */
export function judgeRecord({ purpose, value }: DomainRecord, found: readonly string[]): Finding {
  switch (purpose) {
    case 'ownership':
      return judge(found, [value], (text) => text.trim() === value)
    case 'mx':
      return judge(found, [value], (name) => plain(name) === plain(value))
    case 'dkim':
      // Some DNS panels add spaces or omit the version. Only the key counts.
      return judge(found.filter(isDkim), [value], (text) => tag(text, 'p') === tag(value, 'p'))
    case 'spf': {
      const include = value.split(' ')[1]!
      return judge(found.filter(isSpf), [include], (text) =>
        text.toLowerCase().split(/\s+/).includes(include),
      )
    }
    case 'dmarc':
      return judge(
        found.filter((text) => /^v=DMARC1\b/i.test(text)),
        ['v=DMARC1'],
        () => true,
      )
  }
}

const isSpf = (text: string): boolean => /^v=spf1(\s|$)/i.test(text)
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

/** The name servers did not respond, so there is no verdict. */
export const UNKNOWN: Finding = { status: 'unknown', detail: 'the name servers did not answer' }

/**
 * Tells whether findings verify a domain. `wanting`: a required record is missing or wrong. `unknown`: a query got no
 * response.
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
/** A domain fails after this time without its required records. A DNS outage of one night must not fail it. */
const PATIENCE_MS = 72 * HOUR_MS
const RECHECK_MS = 24 * HOUR_MS

export type DomainStatus = 'pending' | 'verified' | 'failed'

/**
 * Returns the status after a check and the delay until the next check; null: a failed domain is checked only on
 * request.
 * @param wantingMs time since the first check without the required records; 0: the records are there.
 */
export function afterCheck(
  before: DomainStatus,
  verdict: 'verified' | 'wanting' | 'unknown',
  wantingMs: number,
): { status: DomainStatus; recheckMs: number | null } {
  if (verdict === 'verified') return { status: 'verified', recheckMs: RECHECK_MS }
  if (verdict === 'wanting' && wantingMs >= PATIENCE_MS)
    return { status: 'failed', recheckMs: null }
  // Early checks are frequent, because a user who has just set the records waits for the result.
  const recheckMs = Math.min(Math.max(wantingMs, MINUTE_MS), HOUR_MS)
  return { status: before, recheckMs: before === 'failed' ? null : recheckMs }
}
