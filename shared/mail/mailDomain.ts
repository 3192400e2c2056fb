/**
 * Names the purpose of a DNS record of a mail domain. Some DNS records of a mail domain route its mail to this service,
 * and others authenticate the mail that it sends.
 */

type RecordPurpose = 'ownership' | 'mx' | 'dkim' | 'spf' | 'dmarc'

export type DomainRecord = {
  purpose: RecordPurpose
  type: 'TXT' | 'MX'
  name: string
  value: string
  /**
   * Holds the preference of an MX record, or null for a DNS record of another type. The priority is null for a DNS
   * record that is no MX record.
   */
  priority: number | null
  /** Tells whether a domain counts as verified only if it has this DNS record. */
  required: boolean
}

/** Describes the result of a check of one DNS record. */
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

/**
 * Lists the DNS records that the owner of a domain has to set. The parameter `mailDomain` is the service's own mail
 * domain. The SPF record of the service's own domain lists the hosts that send mail.
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
 * Decides whether a DNS record is right, by comparing it with the TXT records or mail exchangers that were found at its
 * name.
 */
export function judgeRecord({ purpose, value }: DomainRecord, found: readonly string[]): Finding {
  switch (purpose) {
    case 'ownership':
      return judge(found, [value], (text) => text.trim() === value)
    case 'mx':
      return judge(found, [value], (name) => plain(name) === plain(value))
    case 'dkim':
      // Some DNS panels add spaces to a DKIM record or omit the version. In a DKIM record, only the key decides whether
      // the record is right.
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

/** Holds the finding about a DNS record if its name servers did not respond. */
export const UNKNOWN: Finding = { status: 'unknown', detail: 'the name servers did not answer' }

/**
 * Tells whether a mail domain is verified, according to the findings about its DNS records. `wanting` means that a
 * required DNS record is missing or wrong. `unknown` means that a DNS query got no response.
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
 * Holds the time for which a verified domain may lack required DNS records before it fails. A DNS outage of one night
 * must not make the domain fail.
 */
const PATIENCE_MS = 72 * HOUR_MS
const RECHECK_MS = 24 * HOUR_MS

export type DomainStatus = 'pending' | 'verified' | 'failed'

/**
 * Returns the status of a domain after a check, and the delay until the next check. If the delay is null, the domain
 * has failed, and it is checked again only on request.
 * @param wantingMs is the time in milliseconds since a check first missed a required DNS record. 0 means that no record
 * is missing.
 */
export function afterCheck(
  before: DomainStatus,
  verdict: 'verified' | 'wanting' | 'unknown',
  wantingMs: number,
): { status: DomainStatus; recheckMs: number | null } {
  if (verdict === 'verified') return { status: 'verified', recheckMs: RECHECK_MS }
  if (verdict === 'wanting' && wantingMs >= PATIENCE_MS)
    return { status: 'failed', recheckMs: null }
  // The first checks of a domain are frequent, because a user who has just set the DNS records waits for the result.
  const recheckMs = Math.min(Math.max(wantingMs, MINUTE_MS), HOUR_MS)
  return { status: before, recheckMs: before === 'failed' ? null : recheckMs }
}
