import { expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { zipSync } from 'fflate'
import { readReport } from '../../../../shared/mail/reports/readReport.ts'
import { isReportFile, isReportInbox } from '../../../../shared/mail/reports/reportMail.ts'
import { dmarcXml, gzipped, tlsJson, zipped } from './reports.ts'

const D = 'mail.example.com'
const RECORDS = [
  { source: '192.0.2.1', count: 3, dkim: 'fail', spf: 'fail' },
  { source: '2001:db8::1', count: 120, dkim: 'pass', spf: 'fail' },
] as const
const DMARC = {
  kind: 'dmarc',
  domain: D,
  reportId: '17',
  beginsAt: new Date('2026-11-22T00:00:00Z'),
  endsAt: new Date('2026-11-22T23:59:59Z'),
  rows: [
    { source: '2001:db8::1', count: 120, isPassed: true, result: 'none, dkim=pass, spf=fail' },
    { source: '192.0.2.1', count: 3, isPassed: false, result: 'none, dkim=fail, spf=fail' },
  ],
}

const bytes = (text: string) => new TextEncoder().encode(text)

test.each([
  ['gzip', gzipped],
  ['zip', zipped],
  ['plain text', bytes],
])('a DMARC report can be read if it comes as %s', (_name, pack) => {
  expect(readReport(pack(dmarcXml(D, RECORDS)))).toEqual(DMARC as never)
})

test('a TLS report is read with its domain, its period and the count for each result', () => {
  expect(readReport(gzipped(tlsJson(D)))).toEqual({
    kind: 'tls',
    domain: D,
    reportId: 'tls-1',
    beginsAt: new Date('2026-11-22T00:00:00Z'),
    endsAt: new Date('2026-11-22T23:59:59Z'),
    rows: [
      { source: null, count: 40, isPassed: true, result: 'success' },
      { source: '192.0.2.9', count: 2, isPassed: false, result: 'certificate-expired' },
    ],
  })
})

test.each([
  ['a bomb in gzip', () => gzipSync(Buffer.alloc(50 * 1024 * 1024)), 'it is too large'],
  [
    'a bomb in zip',
    () => zipSync({ 'a.xml': new Uint8Array(50 * 1024 * 1024) }),
    'it is too large',
  ],
  ['half an archive', () => gzipped(dmarcXml(D, RECORDS)).subarray(0, 60), /archive|no report/],
  ['an empty archive', () => zipSync({}), 'its archive is empty'],
  ['an HTML page', () => bytes('<html><body>Hi</body></html>'), 'it is no report of DMARC'],
  ['JSON without the members of a report', () => bytes('{"a":1}'), 'it is no report of RFC 8460'],
  ['JSON that is cut', () => bytes('{"a":'), 'it is no report of RFC 8460'],
  ['deep elements', () => bytes('<a>'.repeat(50)), 'its elements are too deep'],
  [
    'a malformed date',
    () => bytes(dmarcXml(D, RECORDS).replace('1795305600', 'yesterday')),
    'its dates are no times',
  ],
])('an aggregate report that is %s is refused', (_name, make, reason) => {
  expect(() => readReport(make())).toThrow(reason)
})

test('a report’s XML entities are not expanded, so an entity bomb (a small file that expands to a huge text) stays short', () => {
  const bomb = `<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>${dmarcXml(D, [
    { ...RECORDS[0], source: '&b;&b;' },
  ]).replace(/^<\?xml.*\?>\n/, '')}`
  expect(readReport(bytes(bomb)).rows).toEqual([
    { source: '&b;&b;', count: 3, isPassed: false, result: 'none, dkim=fail, spf=fail' },
  ])
})

test('a DMARC report keeps only the thousand rows with the largest counts, and reads a negative count as 0', () => {
  const many = Array.from({ length: 1_200 }, (_, n) => ({ ...RECORDS[1], count: n - 1 }))
  const { rows } = readReport(bytes(dmarcXml(D, many)))
  expect(rows).toHaveLength(1_000)
  expect(rows[0]!.count).toBe(1_198)
  expect(readReport(bytes(dmarcXml(D, many.slice(0, 1)))).rows[0]!.count).toBe(0)
})

test('mail reports are read in the inboxes dmarc, tlsrpt and postmaster, and in the inbox that the setting POSTMASTER names', () => {
  const inboxes = ['dmarc@a.test', 'tlsrpt@b.test', 'postmaster@a.test', 'ops@a.test', 'bot@a.test']
  expect(inboxes.filter((address) => isReportInbox(address, 'ops@a.test'))).toEqual(
    inboxes.slice(0, 4),
  )
})

test.each([
  ['google.com!a.test!1!2.zip', 'application/zip', true],
  ['a.test!b.test!1!2!uniq.xml.gz', 'application/octet-stream', true],
  ['report.json.gz', 'application/gzip', true],
  ['x', 'application/tlsrpt+gzip', true],
  ['photos.zip', 'application/zip', false],
  ['page.xml', 'text/xml', false],
])(
  'whether the attachment %s with the type %s counts as an aggregate report: %p',
  (filename, contentType, isOne) => {
    expect(isReportFile({ filename, contentType, size: 100 })).toBe(isOne)
    expect(isReportFile({ filename, contentType, size: 3 * 1024 * 1024 })).toBe(false)
  },
)
