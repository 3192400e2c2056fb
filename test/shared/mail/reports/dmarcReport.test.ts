/** Tests how the service reads each element of a DMARC report. */
import { describe, expect, test } from 'bun:test'
import { ReportError } from '../../../../shared/mail/reports/aggregateReport.ts'
import { readDmarcReport } from '../../../../shared/mail/reports/dmarcReport.ts'

type Row = { ip?: string; count?: string; dkim?: string; spf?: string; disposition?: string }

const element = (name: string, text: string | undefined) =>
  text === undefined ? '' : `<${name}>${text}</${name}>`
const record = ({ ip, count = '1', dkim, spf, disposition }: Row = {}) =>
  `<record><row>${element('source_ip', ip)}${element('count', count)}<policy_evaluated>${
    element('disposition', disposition) + element('dkim', dkim) + element('spf', spf)
  }</policy_evaluated></row></record>`
const report = (records: string, { domain = 'a.example', begin = '0', end = '86399' } = {}) =>
  `<feedback><report_metadata><report_id> 17 </report_id><date_range>${element(
    'begin',
    begin,
  )}${element('end', end)}</date_range></report_metadata><policy_published>${element(
    'domain',
    domain,
  )}</policy_published>${records}</feedback>`
const read = (...rows: Row[]) => readDmarcReport(report(rows.map(record).join(''))).rows
const fault = (xml: string) => {
  try {
    readDmarcReport(xml)
  } catch (error) {
    return error instanceof ReportError ? error.message : error
  }
  return null
}

test('the id and the period of a DMARC report are read without the blanks around them', () => {
  expect(readDmarcReport(report(record(), { begin: ' 0 ' }))).toMatchObject({
    kind: 'dmarc',
    reportId: '17',
    beginsAt: new Date(0),
    endsAt: new Date(86_399_000),
  })
})

test('the domain of a DMARC report is converted to lower case, without a dot at the end', () => {
  const domain = (given: string) => readDmarcReport(report(record(), { domain: given })).domain
  expect(domain(' Mail.A.Example. ')).toBe('mail.a.example')
  expect(domain('a&amp;b')).toBe('a&b')
  expect(domain('d'.repeat(256))).toHaveLength(255)
})

describe('each row of a DMARC report is read with its result, source and count', () => {
  test('a row of a DMARC report counts as passed if DKIM or SPF passes', () => {
    const passed = (dkim: string, spf: string) => read({ dkim, spf })[0]!.isPassed
    expect(passed('pass', 'fail')).toBe(true)
    expect(passed('fail', 'pass')).toBe(true)
    expect(passed('fail', 'fail')).toBe(false)
  })

  test('a row of a DMARC report has the disposition, the DKIM result and the SPF result, each cut to 20 characters', () => {
    expect(read({ dkim: 'pass', spf: 'fail', disposition: 'reject' })[0]!.result).toBe(
      'reject, dkim=pass, spf=fail',
    )
    expect(read({})[0]!.result).toBe('none, dkim=none, spf=none')
    expect(read({ dkim: 'd'.repeat(21) })[0]!.result).toBe(`none, dkim=${'d'.repeat(20)}, spf=none`)
  })

  test('a row of a DMARC report has the address of the mail’s source, or null', () => {
    expect(read({ ip: ' 192.0.2.1 ' })[0]!.source).toBe('192.0.2.1')
    expect(read({ ip: '' })[0]!.source).toBeNull()
    expect(read({})[0]!.source).toBeNull()
  })

  test('a value of a row in a DMARC report is not used for the next row', () => {
    expect(read({ ip: '192.0.2.1', count: '2', dkim: 'pass' }, {})).toEqual([
      { source: '192.0.2.1', count: 2, isPassed: true, result: 'none, dkim=pass, spf=none' },
      { source: null, count: 1, isPassed: false, result: 'none, dkim=none, spf=none' },
    ])
  })

  test('in the result, the rows of a DMARC report are sorted by their counts, the largest first', () => {
    expect(read({ count: '1' }, { count: '3' }).map(({ count }) => count)).toEqual([3, 1])
  })
})

describe('an XML element of a DMARC report is read only where the format of DMARC reports allows the element', () => {
  test('an XML element of a DMARC report may have a namespace prefix', () => {
    const xml = report(record({ count: '5' })).replace(/<(\/?)/g, '<$1d:')
    expect(readDmarcReport(xml).rows[0]!.count).toBe(5)
  })

  test('an XML element of a DMARC report is read only inside its proper parent elements', () => {
    const xml = report(record({ count: '5' })).replace('<row>', '<row><x><count>9</count></x>')
    expect(readDmarcReport(xml).rows[0]!.count).toBe(5)
  })

  test('if an XML element of a DMARC report occurs twice, its last value counts', () => {
    const xml = report(record({ count: '5' })).replace('<row>', '<row><count>9</count>')
    expect(readDmarcReport(xml).rows[0]!.count).toBe(5)
  })

  test('XML elements of a DMARC report may be nested 12 levels deep', () => {
    const deep = (levels: number) =>
      report(record() + '<x>'.repeat(levels - 1) + '</x>'.repeat(levels - 1))
    expect(fault(deep(12))).toBeNull()
    expect(fault(deep(13))).toBe('its elements are too deep')
  })
})

test('a text without a domain or without records is not a DMARC report', () => {
  expect(fault(report(''))).toBe('it is no report of DMARC')
  expect(fault(report(record(), { domain: '' }))).toBe('it is no report of DMARC')
  expect(fault(report(record(), { domain: ' . ' }))).toBe('it is no report of DMARC')
  expect(fault('')).toBe('it is no report of DMARC')
})

test('a DMARC report is refused if a time of its period is not valid', () => {
  expect(fault(report(record(), { begin: 'x' }))).toBe('its dates are no times')
  expect(fault(report(record(), { end: 'x' }))).toBe('its dates are no times')
})

test('a DMARC report with more than 100,000 records is refused', () => {
  const records = '<record/>'.repeat(100_000)
  expect(fault(report(records))).toBeNull()
  expect(fault(report(`${records}<record/>`))).toBe('it has too many records')
})

test('an XML entity that a DMARC report defines is not expanded', () => {
  const xml = `<!DOCTYPE feedback [<!ENTITY x "evil.example">]>${report(record(), { domain: '&x;' })}`
  expect(readDmarcReport(xml).domain).toBe('&x;')
})

test('control characters in a DMARC report become blanks, because PostgreSQL cannot store U+0000', () => {
  const { domain } = readDmarcReport(report(record(), { domain: 'a\u0000b.example' }))
  expect(domain).toBe('a b.example')
})
