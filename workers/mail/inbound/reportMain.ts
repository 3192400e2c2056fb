/**
 * Reads aggregate reports for `createReadReport`, which kills this process if a report takes too much time or memory to
 * read.
 */
import { type AggregateReport, ReportError } from '../../../shared/mail/reports/aggregateReport.ts'
import { readReport } from '../../../shared/mail/reports/readReport.ts'
import { serveParent } from '../../process/child.ts'

/** Holds the content of an aggregate report, or the reason why a file is not an aggregate report. */
export type ReadReport = AggregateReport | { fault: string }

serveParent(async ({ bytes }: { bytes: Uint8Array }): Promise<ReadReport> => {
  try {
    return readReport(bytes)
  } catch (error) {
    if (error instanceof ReportError) return { fault: error.message }
    throw error
  }
})
