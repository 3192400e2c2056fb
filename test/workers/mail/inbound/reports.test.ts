/**
 * Tests aggregate reports (DMARC and TLS) of other hosts, from their arrival by SMTP to the totals that the operator
 * reads.
 */
import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import nodemailer from 'nodemailer'
import { createReadReport } from '../../../../workers/mail/inbound/readReport.ts'
import { dmarcXml, gzipped, tlsJson, zipped } from '../../../shared/mail/reports/reports.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
import { silentLog } from '../../../support/logs.ts'
import { dnsError } from '../../../support/mail/fakeLookUp.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

const D = 'mail.test'
const PATH = '/v0/platform/mail-reports'
const PASSED = { source: '192.0.2.1', count: 12, dkim: 'pass', spf: 'pass' } as const
const FORGED = { source: '198.51.100.7', count: 5, dkim: 'fail', spf: 'fail' } as const

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    env: { POSTMASTER: `operator@${D}` },
    pools: ['inbound'],
    // Only reporter.test has a DMARC policy in the DNS of the test, so only its reports are authenticated.
    lookUp: async (name, type) => {
      if (type !== 'TXT') throw dnsError('ENOTFOUND')
      if (name === 'reporter.test') return [['v=spf1 ip4:127.0.0.0/8 -all']] as never
      if (name === '_dmarc.reporter.test') return [['v=DMARC1; p=reject']] as never
      throw dnsError('ENOTFOUND')
    },
  })
})
afterAll(() => service[Symbol.asyncDispose]())

const newest = () => new Date(Date.now() - 3_600_000)
/** Returns an aggregate report (DMARC or TLS) about a period that ended an hour ago. */
const recent = (xml: string) =>
  xml.replace('1795391999', String(Math.floor(newest().getTime() / 1000)))

async function send(mail: {
  from?: string
  to?: string
  filename: string
  content: Uint8Array
}): Promise<void> {
  const { from = 'noreply@reporter.test', to = `dmarc@${D}`, filename, content } = mail
  await nodemailer
    .createTransport({ host: '127.0.0.1', port: service.smtp!.port, ignoreTLS: true })
    .sendMail({
      envelope: { from: 'bounces@reporter.test', to },
      from,
      to,
      subject: `Report Domain: ${D}`,
      text: 'This is a report.',
      attachments: [{ filename, content: Buffer.from(content) }],
    })
}

const reports = async () => (await service.platform.get(PATH)).body
const stored = async () => {
  const { rows } = await service.database.pool.query(
    'select report_id from aggregate_reports order by id',
  )
  return rows.map(({ report_id }) => report_id)
}

test('a DMARC aggregate report arrives in the postmaster inbox, and the operator can read the rows of the report', async () => {
  const operator = await service.newAgent({ emailName: 'operator' })
  await send({
    filename: `reporter.test!${D}!1!2.zip`,
    content: zipped(recent(dmarcXml(D, [PASSED, FORGED]))),
  })
  const found = await waitFor('the report', async () => {
    const body = await reports()
    return body.days.length > 0 ? body : null
  })
  expect(found).toEqual({
    days: [{ date: newest().toISOString().slice(0, 10), kind: 'dmarc', passed: 12, failed: 5 }],
    sources: [
      {
        kind: 'dmarc',
        domain: D,
        source: '192.0.2.1',
        result: 'none, dkim=pass, spf=pass',
        isPassed: true,
        count: 12,
        reporters: ['reporter.test'],
      },
      {
        kind: 'dmarc',
        domain: D,
        source: '198.51.100.7',
        result: 'none, dkim=fail, spf=fail',
        isPassed: false,
        count: 5,
        reporters: ['reporter.test'],
      },
    ],
    unproven: 0,
  })
  expect((await operator.get('/v0/messages')).body.count).toBe(1)
})

test('a TLS report to the address tlsrpt is counted, whereas a repeated report or a report about a foreign domain is not', async () => {
  const xml = recent(dmarcXml(D, [PASSED]))
  await send({ filename: `a!${D}!1.xml.gz`, content: gzipped(xml) })
  await send({ filename: `b!x!1.xml.gz`, content: gzipped(dmarcXml('other.test', [PASSED], '18')) })
  await send({
    to: `tlsrpt@${D}`,
    filename: 'c.json.gz',
    content: gzipped(tlsJson(D).replace('2026-11-22T23:59:59Z', newest().toISOString())),
  })
  await waitFor('the TLS report', async () => (await stored()).includes('tls-1'))
  // A single job reads the waiting aggregate reports in the order of their arrival. The TLS report came last, so the
  // earlier reports are stored too.
  expect(await stored()).toEqual(['17', 'tls-1'])
  const { days } = await reports()
  expect(days).toContainEqual(expect.objectContaining({ kind: 'tls', passed: 40, failed: 2 }))
})

test('an aggregate report from a sender without a DMARC pass counts as unproven, and does not change the daily totals', async () => {
  const { days } = await reports()
  await send({
    from: 'noreply@liar.test',
    filename: `liar.test!${D}!1!2.xml.gz`,
    content: gzipped(recent(dmarcXml(D, [{ ...FORGED, count: 9_999 }], '19'))),
  })
  await waitFor('the report', async () => (await reports()).unproven === 1)
  expect((await reports()).days).toEqual(days)
})

test('an aggregate report from a sender with an endless domain name does not stay in the queue', async () => {
  const domain = `${'x'.repeat(60)}.`.repeat(5)
  await send({
    from: `noreply@${domain}example`,
    filename: `a!${D}!8.xml.gz`,
    content: gzipped(recent(dmarcXml(D, [PASSED], '8'))),
  })
  await waitFor('the report', async () => (await stored()).includes('8'))
})

test('an aggregate report that is a decompression bomb does not prevent the processing of the next report', async () => {
  const bomb = gzipped('<feedback>'.padEnd(60 * 1024 * 1024, ' '))
  await send({ filename: `a!${D}!9.xml.gz`, content: bomb })
  await send({
    filename: `a!${D}!10.xml.gz`,
    content: gzipped(recent(dmarcXml(D, [PASSED], '20'))),
  })
  await waitFor('the report after the bomb', async () => (await stored()).includes('20'))
  expect(await stored()).toEqual(['17', 'tls-1', '19', '8', '20'])
})

test('a project cannot read aggregate reports, and the operator can read the reports of at most 90 days', async () => {
  const agent = await service.newAgent()
  expect((await agent.get(PATH)).status).toBe(403)
  const { status, body } = await service.platform.get(`${PATH}?days=91`)
  expect([status, body.message]).toEqual([400, expect.stringContaining('days')])
})

test('the job that reads aggregate reports does nothing if the message with the report was deleted', async () => {
  const { pool } = service.database
  const context = { pool, log: silentLog } as never
  const read = createReadReport(context, { blobs: noBlobs, mailDomain: D })
  const before = await stored()
  await read({ messageRow: '999999999' }, { attempt: 1 })
  expect(await stored()).toEqual(before)
})

test('a file that is no aggregate report does not stop the job that reads the reports', async () => {
  const log: unknown[] = []
  const { pool } = service.database
  const xml = recent(dmarcXml(D, [PASSED], '21'))
  await send({ filename: `broken!${D}!1.xml.gz`, content: gzipped('<feedback>') })
  await send({ filename: `a!${D}!3.xml.gz`, content: gzipped(xml) })
  await waitFor('the later report', async () => (await stored()).includes('21'))
  const broken = await waitFor('the broken report', async () => {
    const { rows } = await pool.query(
      `select m.row from messages m where m.attachments::text like '%broken!%'`,
    )
    return rows[0] ?? null
  })
  const context = { pool, log: { info: (fields: unknown) => log.push(fields) } } as never
  const read = createReadReport(context, { blobs: noBlobs, mailDomain: D })
  await read({ messageRow: broken.row }, { attempt: 1 })
  expect(log).toMatchObject([{ reporter: 'reporter.test', outcome: 'it is no report of DMARC' }])
})

/** Delivers a report, and waits until the service has stored it. @returns the row of its message. */
async function delivered(id: string, records = [PASSED]): Promise<string> {
  const filename = `a!${D}!${id}.xml.gz`
  await send({ filename, content: gzipped(recent(dmarcXml(D, records, id))) })
  await waitFor('the report', async () => (await stored()).includes(id))
  const { rows } = await service.database.pool.query(
    'select row from messages where attachments::text like $1',
    [`%${filename}%`],
  )
  return rows[0].row
}

test('an aggregate report waits while the system cannot start the process that reads it, and is read later', async () => {
  const { pool } = service.database
  const messageRow = await delivered('22')
  await pool.query(`delete from aggregate_reports where report_id = '22'`)
  const context = { pool, log: silentLog } as never
  const read = createReadReport(context, { blobs: noBlobs, mailDomain: D })
  const spawn = spyOn(Bun, 'spawn').mockImplementation(() => {
    throw new Error('EAGAIN')
  })
  try {
    await expect(read({ messageRow }, { attempt: 1 })).rejects.toThrow('EAGAIN')
  } finally {
    spawn.mockRestore()
  }
  await read({ messageRow }, { attempt: 1 })
  expect(await stored()).toContain('22')
})

test('an aggregate report that takes too much time to read does not stay in the queue', async () => {
  const { pool } = service.database
  const messageRow = await delivered('23', Array(20_000).fill(PASSED))
  const log: unknown[] = []
  const context = { pool, log: { info: (fields: unknown) => log.push(fields) } } as never
  const limits = { timeMaxMs: 0, memoryMaxBytes: 512 * 1024 * 1024 }
  const read = createReadReport(context, { blobs: noBlobs, mailDomain: D, limits })
  await read({ messageRow }, { attempt: 1 })
  expect(log).toMatchObject([{ outcome: 'the reader of reports took over 0 ms' }])
})
