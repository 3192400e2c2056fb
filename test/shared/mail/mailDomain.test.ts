import { expect, test } from 'bun:test'
import {
  afterCheck,
  domainRecords,
  type Findings,
  judgeRecord,
  UNKNOWN,
  verdictOf,
} from '../../../shared/mail/mailDomain.ts'

const RECORDS = domainRecords(
  { domain: 'a.test', token: 'abc', dkimSelector: 's1', dkimRecord: 'v=DKIM1; k=rsa; p=AAAA' },
  { mailDomain: 'mail.test', mailHostname: 'mx.mail.test' },
)
const record = (purpose: string) => RECORDS.find((one) => one.purpose === purpose)!

test('a mail domain needs DNS records for ownership, MX, DKIM, SPF and DMARC', () => {
  expect(RECORDS.map(({ type, name, value, priority }) => [type, name, value, priority])).toEqual([
    ['TXT', '_purser.a.test', 'purser-verification=abc', null],
    ['MX', 'a.test', 'mx.mail.test', 10],
    ['TXT', 's1._domainkey.a.test', 'v=DKIM1; k=rsa; p=AAAA', null],
    ['TXT', 'a.test', 'v=spf1 include:mail.test ~all', null],
    ['TXT', '_dmarc.a.test', 'v=DMARC1; p=none', null],
  ])
})

test('the check of a mail domain ignores differences in DNS records that have no effect, such as blanks and additional records', () => {
  const cases: [string, string[], string][] = [
    ['ownership', [], 'missing'],
    ['ownership', ['purser-verification=abcd', 'other'], 'mismatch'],
    ['ownership', ['other', ' purser-verification=abc '], 'ok'],
    ['mx', ['MX.mail.test.'], 'ok'],
    ['mx', ['mx.other.test', 'mx.mail.test'], 'ok'],
    ['mx', ['mx.other.test'], 'mismatch'],
    ['dkim', ['v=DKIM1; p=AA AA; k=rsa'], 'ok'],
    ['dkim', ['p=AAAA'], 'ok'],
    ['dkim', ['v=DKIM1; k=rsa; p=BBBB'], 'mismatch'],
    ['dkim', ['v=DKIM1; k=rsa; p='], 'missing'],
    ['spf', ['google-site-verification=x', 'v=spf1 mx include:MAIL.test -all'], 'ok'],
    ['spf', ['v=spf1 include:mail.test.evil.test -all'], 'mismatch'],
    ['spf', ['include:mail.test'], 'missing'],
    ['dmarc', ['v=DMARC1; p=reject'], 'ok'],
    ['dmarc', ['v=DMARC10'], 'missing'],
    ['dmarc', ['v = DMARC1 ; p=none'], 'ok'],
    ['dmarc', ['v=dmarc1; p=none'], 'missing'],
    ['dmarc', ['v=DMARC1-test'], 'missing'],
    ['dmarc', ['v=DMARC1; p=none', 'v=DMARC1; p=reject'], 'mismatch'],
    ['spf', ['v=spf1 +include:mail.test -all'], 'ok'],
    ['spf', ['v=spf1 include:mail.test -all', 'v=spf1 mx -all'], 'mismatch'],
  ]
  for (const [purpose, found, status] of cases) {
    expect([purpose, found, judgeRecord(record(purpose), found).status]).toEqual([
      purpose,
      found,
      status,
    ])
  }
})

test('the verdict on a mail domain depends only on required DNS records, and is unknown if no required record is missing but a DNS query gets no answer', () => {
  const ok = { status: 'ok', detail: '' } as const
  const missing = { status: 'missing', detail: '' } as const
  const all: Findings = { ownership: ok, mx: ok, dkim: ok, spf: missing, dmarc: missing }
  expect(verdictOf(RECORDS, all)).toBe('verified')
  expect(verdictOf(RECORDS, { ...all, mx: UNKNOWN })).toBe('unknown')
  expect(verdictOf(RECORDS, { ...all, mx: UNKNOWN, dkim: missing })).toBe('wanting')
  expect(verdictOf(RECORDS, {})).toBe('unknown')
})

test('if a mail domain lacks required DNS records for three days, its check fails', () => {
  const hour = 3_600_000
  expect(afterCheck('pending', 'wanting', 0)).toEqual({ status: 'pending', recheckMs: 60_000 })
  expect(afterCheck('pending', 'wanting', 10 * hour)).toEqual({
    status: 'pending',
    recheckMs: hour,
  })
  expect(afterCheck('verified', 'wanting', 71 * hour)).toEqual({
    status: 'verified',
    recheckMs: hour,
  })
  expect(afterCheck('verified', 'wanting', 72 * hour)).toEqual({
    status: 'failed',
    recheckMs: null,
  })
  expect(afterCheck('verified', 'unknown', 100 * hour)).toEqual({
    status: 'verified',
    recheckMs: hour,
  })
  expect(afterCheck('failed', 'wanting', 0)).toEqual({ status: 'failed', recheckMs: null })
  expect(afterCheck('failed', 'verified', 0)).toEqual({ status: 'verified', recheckMs: 24 * hour })
})
