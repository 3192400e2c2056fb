/**
 * Lists the functions that read text files, so that the test that counts steps measures them. Functions that read
 * archives and PDF run in a child process with a limit (otherExports.ts).
 */
import { mendLines } from '../../../../shared/mail/calendar/contentLines.ts'
import { CALENDAR_MAX_CHARS } from '../../../../shared/mail/calendar/invite.ts'
import { addressOfMailto } from '../../../../shared/mail/calendar/mailto.ts'
import { mayStartAt } from '../../../../shared/mail/calendar/seriesInstance.ts'
import { isRule } from '../../../../shared/mail/calendar/writeCalendar.ts'
import { ianaName } from '../../../../shared/mail/calendar/zones.ts'
import { readCsv } from '../../../../shared/mail/documents/csvText.ts'
import { cellText, DocumentError } from '../../../../shared/mail/documents/document.ts'
import { kindOf, mayHoldText } from '../../../../shared/mail/documents/documentKind.ts'
import { readHtmlDocument } from '../../../../shared/mail/documents/htmlDocument.ts'
import { colourOf } from '../../../../shared/mail/documents/ink.ts'
import { lengthOf } from '../../../../shared/mail/documents/office/openStyles.ts'
import { shownValue } from '../../../../shared/mail/documents/office/sheetStyles.ts'
import { readXml } from '../../../../shared/mail/documents/office/xml.ts'
import { decodeText, readPlainText } from '../../../../shared/mail/documents/plainText.ts'
import { readRtf } from '../../../../shared/mail/documents/rtfText.ts'
import { HTML, TEXT } from '../../inputs/grammars.ts'
import type { Reader } from '../reader.ts'
import { HTML_MAX, MAIL_MAX, mailReader } from './mailReader.ts'

const NAME_MAX = 255
const ATTRIBUTE_MAX = 4_000
const bytes = (text: string) => Buffer.from(text)
const RTF = {
  tokens:
    "{\\rtf1 ¦{¦}¦\\par ¦\\pard¦\\cell ¦\\row ¦\\trowd ¦\\u1234 ?¦\\u-1 ¦\\uc0 ¦\\uc9999999 ¦\\'e9¦\\v ¦\\v0 ¦\\fs1 ¦\\cf1 ¦{\\colortbl;\\red1\\green2;}¦{\\*\\x ¦\\bin9 ¦\\*¦\\¦\\\\¦a¦ ¦\n¦;¦é¦\\deleted ¦{\\annotation ".split(
      '¦',
    ),
  nests: [['{', '}'] as [string, string], ['{\\b ', '}'] as [string, string]],
}
const CSV = { ...TEXT, tokens: [...TEXT.tokens, ',', ';', '\t', '"', '""', '\n', '","', '"\n'] }

const CALENDAR = {
  ...TEXT,
  tokens:
    'BEGIN:VEVENT¦END:VEVENT¦DTSTART:¦EXDATE:¦20260302¦2026-03-02T10:00Z¦;TZID="¦DESCRIPTION:¦ATTENDEE;CN="¦"¦:¦;¦,¦\r¦\n¦\r\n¦ ¦\n ¦a'.split(
      '¦',
    ),
}
/** Sets the length of the longest recurrence rule that the API takes. */
const RULE_MAX = 500
const SERIES_START = { local: '2030-01-29T10:00:00', zone: 'Europe/Berlin' }
/** Holds the start of an instance that is 3,800 days after the start of the series. */
const SERIES_AT = Date.UTC(2040, 5, 25, 8)
const RULE = { ...TEXT, tokens: [';BYDAY=MO', 'BYDAY=', ',MO', ';COUNT=1', '=', 'A', ';'] }

const refusable = (read: () => unknown): unknown => {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error
    return null
  }
}

export const DOCUMENT_READERS: readonly Reader[] = [
  mailReader('documents/documentKind.ts kindOf', MAIL_MAX, TEXT, (text) =>
    kindOf(bytes(text), { filename: 'a', contentType: 'text/plain' }),
  ),
  mailReader('documents/documentKind.ts mayHoldText', NAME_MAX, TEXT, (text) =>
    mayHoldText({ filename: text, contentType: text }),
  ),
  mailReader('documents/document.ts cellText', MAIL_MAX, TEXT, (text) => cellText(text)),
  mailReader('documents/plainText.ts decodeText', MAIL_MAX, TEXT, (text) =>
    decodeText(bytes(text)),
  ),
  mailReader('documents/plainText.ts readPlainText', MAIL_MAX, TEXT, (text) =>
    readPlainText(bytes(text)),
  ),
  mailReader('documents/csvText.ts readCsv', MAIL_MAX, CSV, (text) => readCsv(bytes(text))),
  mailReader('documents/rtfText.ts readRtf', MAIL_MAX, RTF, (text) => readRtf(bytes(text))),
  mailReader(
    'documents/htmlDocument.ts readHtmlDocument',
    HTML_MAX,
    HTML,
    (text) => readHtmlDocument(bytes(text)),
    // Besides linear work, the function needs many steps for visibleHtml and for 500 links of 2,000 characters each.
    // The budget allows these steps.
    { budget: 1_400_000 },
  ),
  mailReader('documents/office/xml.ts readXml', MAIL_MAX, HTML, (text) =>
    refusable(() => readXml(bytes(text), { open: () => {} })),
  ),
  mailReader('documents/office/openStyles.ts lengthOf', ATTRIBUTE_MAX, TEXT, (text) =>
    lengthOf(text),
  ),
  mailReader('documents/office/sheetStyles.ts shownValue', ATTRIBUTE_MAX, TEXT, (text) =>
    shownValue(45_000.5, text, false),
  ),
  mailReader('documents/ink.ts colourOf', ATTRIBUTE_MAX, TEXT, (text) => colourOf(text)),
  mailReader('calendar/contentLines.ts mendLines', CALENDAR_MAX_CHARS, CALENDAR, (text) =>
    mendLines(text),
  ),
  mailReader('calendar/mailto.ts addressOfMailto', CALENDAR_MAX_CHARS, TEXT, (text) =>
    addressOfMailto(`mailto:${text}`),
  ),
  mailReader('calendar/zones.ts ianaName', ATTRIBUTE_MAX, TEXT, (text) => ianaName(text)),
  mailReader('calendar/writeCalendar.ts isRule', ATTRIBUTE_MAX, RULE, (text) =>
    isRule(`FREQ=DAILY;${text}`),
  ),
  mailReader(
    'calendar/seriesInstance.ts mayStartAt',
    RULE_MAX,
    RULE,
    (text) => {
      for (const rule of [`FREQ=DAILY;${text}`, `FREQ=MONTHLY;BYSETPOS=-1;${text}`]) {
        if (isRule(rule)) mayStartAt({ start: SERIES_START, rule }, SERIES_AT)
      }
    },
    {
      own: { weekdays: (length) => `BYDAY=${'MO,'.repeat(length / 3)}MO;COUNT=999999` },
      // The service evaluates COUNT on at most 4,000 days of the series.
      budget: 400_000,
    },
  ),
]
