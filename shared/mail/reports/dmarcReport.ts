import { Parser } from 'htmlparser2'
import {
  type AggregateReport,
  largest,
  NAME_MAX,
  ReportError,
  type ReportRow,
  reportCount,
  reportTime,
} from './aggregateReport.ts'

/**
 * Sets the maximum depth of XML elements in a DMARC report. The deepest path of RFC 7489, appendix C, is
 * `feedback/record/row/policy_evaluated/reason/comment`.
 */
const DEPTH_MAX = 12
/** Sets the maximum number of records that the service reads of a DMARC report. */
const RECORDS_MAX = 100_000

const RECORD = 'feedback/record'
const ROW = `${RECORD}/row`
/** Lists the paths of the XML elements in a DMARC report that the service reads. */
const READ = new Set([
  'feedback/report_metadata/report_id',
  'feedback/report_metadata/date_range/begin',
  'feedback/report_metadata/date_range/end',
  'feedback/policy_published/domain',
  `${ROW}/source_ip`,
  `${ROW}/count`,
  `${ROW}/policy_evaluated/disposition`,
  `${ROW}/policy_evaluated/dkim`,
  `${ROW}/policy_evaluated/spf`,
])

/**
 * Reads a DMARC report (RFC 7489, appendix C). The parser does not expand the XML entities that the report defines, so
 * these entities cannot make the text longer.
 * @throws {ReportError} if the text is no DMARC report, or if the report is too deep or too long.
 */
export function readDmarcReport(xml: string): AggregateReport {
  const path: string[] = []
  let texts = new Map<string, string>()
  const rows: ReportRow[] = []
  const parser = new Parser(
    {
      onopentag(name) {
        if (path.length >= DEPTH_MAX) throw new ReportError('its elements are too deep')
        path.push(name.slice(name.indexOf(':') + 1))
        // The reader deletes the old text first. Otherwise the digits of two elements with the same path would join to
        // one wrong number.
        texts.delete(path.join('/'))
      },
      ontext(data) {
        const place = path.join('/')
        if (!READ.has(place)) return
        texts.set(place, `${texts.get(place) ?? ''}${data}`.slice(0, NAME_MAX))
      },
      onclosetag() {
        if (path.join('/') === RECORD) {
          if (rows.length >= RECORDS_MAX) throw new ReportError('it has too many records')
          rows.push(rowOf(texts))
          texts = new Map([...texts].filter(([place]) => !place.startsWith(`${RECORD}/`)))
        }
        path.pop()
      },
    },
    { xmlMode: true, decodeEntities: true },
  )
  parser.write(xml)
  parser.end()
  const read = (place: string) => oneLine(texts.get(`feedback/${place}`))
  const domain = read('policy_published/domain').toLowerCase().replace(/\.$/, '')
  if (domain === '' || rows.length === 0) throw new ReportError('it is no report of DMARC')
  return {
    kind: 'dmarc',
    domain,
    reportId: read('report_metadata/report_id'),
    beginsAt: reportTime(read('report_metadata/date_range/begin')),
    endsAt: reportTime(read('report_metadata/date_range/end')),
    rows: largest(rows),
  }
}

/** Returns a text without control characters, because PostgreSQL refuses the character U+0000 in texts. */
const oneLine = (text = ''): string => text.replace(/\p{Cc}+/gu, ' ').trim()

function rowOf(texts: ReadonlyMap<string, string>): ReportRow {
  const read = (name: string) => oneLine(texts.get(`${ROW}/${name}`))
  const word = (name: string) => read(`policy_evaluated/${name}`).slice(0, 20) || 'none'
  const [dkim, spf] = [word('dkim'), word('spf')]
  return {
    source: read('source_ip') || null,
    count: reportCount(read('count')),
    // A mail passes DMARC if DKIM or SPF passes for the domain in From (RFC 7489 §3).
    isPassed: dkim === 'pass' || spf === 'pass',
    result: `${word('disposition')}, dkim=${dkim}, spf=${spf}`,
  }
}
