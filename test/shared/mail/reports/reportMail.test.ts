/** Tests which mails the service treats as mails with aggregate reports (DMARC and TLS). */
import { describe, expect, test } from 'bun:test'
import {
  isReportFile,
  isReportInbox,
  REPORT_FILE_MAX_BYTES,
} from '../../../../shared/mail/reports/reportMail.ts'

test('aggregate reports are expected in the inboxes dmarc, tlsrpt and postmaster, and in the inbox of the setting POSTMASTER', () => {
  const inbox = (address: string) => isReportInbox(address, 'ops@a.example')
  for (const name of ['dmarc', 'tlsrpt', 'postmaster', 'ops']) {
    expect(inbox(`${name}@a.example`)).toBe(true)
  }
  for (const name of ['dmarc2', 'my-dmarc', 'desk', '"dmarc@x"']) {
    expect(inbox(`${name}@a.example`)).toBe(false)
  }
  expect(inbox('ops@b.example')).toBe(false)
  expect(isReportInbox('desk@a.example', undefined)).toBe(false)
})

describe('an attachment counts as an aggregate report only with the right name or media type, and a limited size', () => {
  const file = (filename: string, contentType = 'application/octet-stream', size = 1) =>
    isReportFile({ filename, contentType, size })

  test.each([
    'b.example!a.example!0!86399.xml',
    'b.example!a.example!0!86399.XML.GZ',
    'b.example!a.example!0!86399.xml.zip',
    'b.example!a.example!0!86399!1.json',
    'b.example!a.example!0!86399.json.gz',
    'b.example!a.example!0!86399.zip',
    'report.xml.gz',
    'report.json.gz',
  ])('an attachment with the name %s may be an aggregate report', (name) => {
    expect(file(name)).toBe(true)
  })

  test.each(['report.xml', 'report.zip', 'a!b.pdf', 'a!b.xmlx', 'report.gz', 'a!b.xml.gz.exe', ''])(
    'an attachment with the name "%s" is not an aggregate report',
    (name) => {
      expect(file(name)).toBe(false)
    },
  )

  test('an attachment with any file name counts as an aggregate report if it has the media type of TLS reports', () => {
    expect(file('x', 'application/tlsrpt+gzip')).toBe(true)
    expect(file('x', 'Application/TLSRPT+JSON')).toBe(true)
    expect(file('x', 'application/tlsrpt+xml')).toBe(false)
    expect(file('x', 'application/tlsrpt+json; x')).toBe(false)
  })

  test('an attachment counts as an aggregate report only if it has at most two mebibytes', () => {
    expect(file('r.xml.gz', '', REPORT_FILE_MAX_BYTES)).toBe(true)
    expect(file('r.xml.gz', '', REPORT_FILE_MAX_BYTES + 1)).toBe(false)
    expect(REPORT_FILE_MAX_BYTES).toBe(2_097_152)
  })
})
