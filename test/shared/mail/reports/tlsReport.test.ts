/** Tests how the service reads each member of a TLS report. */
import { describe, expect, test } from 'bun:test'
import { ReportError } from '../../../../shared/mail/reports/aggregateReport.ts'
import { readTlsReport } from '../../../../shared/mail/reports/tlsReport.ts'

type Json = Record<string, unknown>

const policy = (domain: string, successes: unknown, ...failures: Json[]): Json => ({
  policy: { 'policy-domain': domain },
  summary: { 'total-successful-session-count': successes },
  'failure-details': failures,
})
const failure = (count: unknown, given: Json = {}): Json => ({
  'result-type': 'certificate-expired',
  'failed-session-count': count,
  ...given,
})
const report = (policies: unknown, given: Json = {}): Json => ({
  'report-id': 'r1',
  'date-range': {
    'start-datetime': '2026-11-22T00:00:00Z',
    'end-datetime': '2026-11-22T23:59:59Z',
  },
  policies,
  ...given,
})
const read = (value: unknown) => readTlsReport(JSON.stringify(value))
const fault = (value: unknown) => {
  try {
    read(value)
  } catch (error) {
    return error instanceof ReportError ? error.message : error
  }
  return null
}
const NO_REPORT = 'it is no report of RFC 8460'

describe('each result in a TLS report becomes a row with its count', () => {
  test('a TLS report has a row for the successes and for each kind of failure, the largest count first', () => {
    const one = policy('a.example', 3, failure(5, { 'sending-mta-ip': '192.0.2.1' }), failure(1))
    expect(read(report([one])).rows).toEqual([
      { source: '192.0.2.1', count: 5, isPassed: false, result: 'certificate-expired' },
      { source: null, count: 3, isPassed: true, result: 'success' },
      { source: null, count: 1, isPassed: false, result: 'certificate-expired' },
    ])
  })

  test('rows of a TLS report with the count 0 are omitted', () => {
    expect(read(report([policy('a.example', 0, failure(0), failure('x'))])).rows).toEqual([])
    expect(read(report([policy('a.example', 1)])).rows).toHaveLength(1)
  })

  test('from a TLS report, the service reads only the rows of policies for the same domain as the first policy', () => {
    const { domain, rows } = read(
      report([policy('A.Example.', 1), policy('b.example', 2), policy('a.example', 3)]),
    )
    expect([domain, rows.map(({ count }) => count)]).toEqual(['a.example', [3, 1]])
  })

  test('a TLS report without failures is accepted', () => {
    const { 'failure-details': _none, ...bare } = policy('a.example', 4)
    expect(read(report([bare])).rows.map(({ count }) => count)).toEqual([4])
  })
})

test('the id and the period of a TLS report are read', () => {
  expect(read(report([policy('a.example', 1)]))).toMatchObject({
    kind: 'tls',
    reportId: 'r1',
    beginsAt: new Date('2026-11-22T00:00:00Z'),
    endsAt: new Date('2026-11-22T23:59:59Z'),
  })
})

describe('the service refuses a text that is not a TLS report', () => {
  const one = policy('a.example', 1)

  test('a text is no TLS report if it is not JSON, or if its JSON does not have the form of a TLS report', () => {
    expect(() => readTlsReport('{')).toThrow(new ReportError(NO_REPORT))
    expect([null, [], 7, {}].map(fault)).toEqual(Array(4).fill(NO_REPORT))
  })

  test('a text is no TLS report if a field is missing or is not a text', () => {
    expect(fault(report([one], { 'report-id': undefined }))).toBe(NO_REPORT)
    expect(fault(report([one], { 'date-range': { 'start-datetime': '0' } }))).toBe(NO_REPORT)
    expect(fault(report([{ ...one, policy: {} }]))).toBe(NO_REPORT)
    expect(fault(report([{ ...one, summary: undefined }]))).toBe(NO_REPORT)
    expect(fault(report([policy('a.example', 1, failure(1, { 'result-type': 7 }))]))).toBe(
      NO_REPORT,
    )
  })

  test('a text is no TLS report if one of its times is invalid', () => {
    const range = { 'start-datetime': '0', 'end-datetime': 'x' }
    expect(fault(report([one], { 'date-range': range }))).toBe('its dates are no times')
  })

  test('a text is no TLS report without a policy, with more than 100 policies, or with more than 10,000 failures of one policy', () => {
    expect(fault(report([]))).toBe(NO_REPORT)
    expect(fault(report(Array(100).fill(one)))).toBeNull()
    expect(fault(report(Array(101).fill(one)))).toBe(NO_REPORT)
    const failing = (count: number) =>
      report([policy('a.example', 1, ...Array(count).fill(failure(1)))])
    expect(fault(failing(10_000))).toBeNull()
    expect(fault(failing(10_001))).toBe(NO_REPORT)
  })

  test('a text is no TLS report if one of its values has more than 255 characters', () => {
    expect(fault(report([one], { 'report-id': 'r'.repeat(255) }))).toBeNull()
    expect(fault(report([one], { 'report-id': 'r'.repeat(256) }))).toBe(NO_REPORT)
  })
})

test('a text with a control character is no TLS report', () => {
  for (const bad of ['\u0000', '\n'])
    expect(fault(report([policy('a.example', 1)], { 'report-id': `r${bad}1` }))).toBe(NO_REPORT)
})
