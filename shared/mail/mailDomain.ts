/** What the DNS of a domain must hold for its mail to come here and to be believed when it goes out. */

type RecordPurpose = 'ownership' | 'mx' | 'dkim' | 'spf' | 'dmarc'

export type DomainRecord = {
  purpose: RecordPurpose
  type: 'TXT' | 'MX'
  name: string
  value: string
  /** Of an MX record; null for others. */
  priority: number | null
  /** Whether the domain is verified only with it. */
  required: boolean
}

/** What a check found of a record. */
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

/** The records to set. `mailDomain` is the service's own, whose SPF record names where its mail comes from. */
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

/** Judges a record by the TXT records, or the names of the mail exchangers, that were found at its name. */
export function judgeRecord({ purpose, value }: DomainRecord, found: readonly string[]): Finding {
  switch (purpose) {
    case 'ownership':
      return judge(found, [value], (text) => text.trim() === value)
    case 'mx':
      return judge(found, [value], (name) => plain(name) === plain(value))
    case 'dkim':
      // Some panels add spaces, or leave the version out; what counts is the key.
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

/** Nobody could say: no verdict on the record. */
export const UNKNOWN: Finding = { status: 'unknown', detail: 'the name servers did not answer' }

/** Whether findings verify a domain: `unknown` where a required record could not be looked up. */
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
/** A domain that has been found wanting for so long has failed; DNS that is down for a night has not. */
const PATIENCE_MS = 72 * HOUR_MS
const RECHECK_MS = 24 * HOUR_MS

export type DomainStatus = 'pending' | 'verified' | 'failed'

/**
 * The status after a check, and when to check again; null for a domain that has failed, until somebody asks.
 * @param wantingMs how long it has been wanting, this check included; 0 when it is not.
 */
export function afterCheck(
  before: DomainStatus,
  verdict: 'verified' | 'wanting' | 'unknown',
  wantingMs: number,
): { status: DomainStatus; recheckMs: number | null } {
  if (verdict === 'verified') return { status: 'verified', recheckMs: RECHECK_MS }
  if (verdict === 'wanting' && wantingMs >= PATIENCE_MS)
    return { status: 'failed', recheckMs: null }
  // Whoever has just set the records waits for us; later a check an hour will do.
  const recheckMs = Math.min(Math.max(wantingMs, MINUTE_MS), HOUR_MS)
  return { status: before, recheckMs: before === 'failed' ? null : recheckMs }
}
