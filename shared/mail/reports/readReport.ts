import type { AggregateReport } from './aggregateReport.ts'
import { readDmarcReport } from './dmarcReport.ts'
import { readTlsReport } from './tlsReport.ts'
import { unpackReport } from './unpackReport.ts'

/** Reads a DMARC or TLS report, compressed or not. @throws {ReportError} if the file is neither. */
export function readReport(bytes: Uint8Array): AggregateReport {
  const text = unpackReport(bytes).trimStart()
  return text.startsWith('{') ? readTlsReport(text) : readDmarcReport(text)
}
