import { join } from 'node:path'
import { FairTurns } from '../../../shared/fair/fairTurns.ts'
import { domainOf, isDomain } from '../../../shared/mail/address.ts'
import { isReportFile } from '../../../shared/mail/reports/reportMail.ts'
import type { Blobs } from '../../../sql/blobs/blobs.ts'
import { storeReport } from '../../../sql/mail/domains/aggregateReports.ts'
import { findReportMail } from '../../../sql/mail/messages/attachments.ts'
import { ChildError, type ChildLimits, createChildren } from '../../process/child.ts'
import type { PoolContext, Task } from '../../queue/task.ts'
import type { ReadReport } from './reportMain.ts'

/**
 * Limits the time and memory for reading one aggregate report. Reading the report of a host that sends millions of
 * mails takes half a second.
 */
const LIMITS: ChildLimits = { timeMaxMs: 5_000, memoryMaxBytes: 512 * 1024 * 1024 }
/**
 * Limits how many attached files of one report mail are read, because RFC 7489 and RFC 8460 require one attached file
 * for each report mail.
 */
const FILES_MAX = 3

/**
 * Reads the aggregate reports from a message to the report inbox. An attached file that is not an aggregate report has
 * no effect.
 */
export function createReadReport(
  { pool, log }: PoolContext,
  {
    blobs,
    mailDomain,
    limits = LIMITS,
  }: { blobs: Blobs; mailDomain: string; limits?: ChildLimits },
): Task<'read_report'> {
  const turns = new FairTurns({ total: 1, perSharer: 1 })
  const children = createChildren<{ bytes: Uint8Array }, ReadReport>({
    file: join(import.meta.dir, 'reportMain.ts'),
    name: 'the reader of reports',
    limits,
  })
  return async ({ messageRow }) => {
    const leave = await turns.enter('reports')
    try {
      const mail = await findReportMail(pool, blobs, messageRow)
      if (mail === null) return
      const domain = domainOf(mail.from)
      // A malformed domain name can be longer than the database column allows, so the code stores an empty name
      // instead.
      const reporter = isDomain(domain) ? domain : ''
      const files = mail.files.filter((file) =>
        isReportFile({ ...file, size: file.content.length }),
      )
      for (const { content: bytes } of files.slice(0, FILES_MAX)) {
        const report = await children
          .run({ bytes })
          .then(({ result }) => result)
          .catch((error: unknown) => {
            if (!(error instanceof ChildError) || error.isAccident) throw error
            return { fault: error.message }
          })
        const outcome =
          'fault' in report
            ? report.fault
            : await storeReport(pool, { ...report, reporter, isProven: mail.isProven, mailDomain })
        log.info({ messageRow, reporter, outcome }, 'aggregate report read')
      }
    } finally {
      leave()
    }
  }
}
