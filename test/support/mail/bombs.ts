/**
 * Builds small files whose content becomes huge or endless when a program reads them. The tests build these files, so
 * that the repository contains none of them.
 */
import { deflateRawSync } from 'node:zlib'
import { strToU8, zipSync } from 'fflate'
import { calendarFile } from './calendar/invitations.ts'

export type Bomb = { filename: string; content: Buffer; contentType?: string }

const MB = 1024 * 1024

const zip = (files: Record<string, string | Uint8Array>): Buffer =>
  Buffer.from(
    zipSync(
      Object.fromEntries(
        Object.entries(files).map(([name, one]) => [
          name,
          typeof one === 'string' ? strToU8(one) : one,
        ]),
      ),
    ),
  )

/** Builds a zip archive with one entry of `bytes` equal letters. The entry is already compressed with deflate. */
function inflating(name: string, bytes: number, others: Record<string, string> = {}): Buffer {
  const packed = deflateRawSync(Buffer.alloc(bytes, 'a'), { level: 9 })
  const whole = zip({ ...others, [name]: '' })
  return withEntry(whole, name, { packed, size: bytes })
}

/**
 * Replaces the content of an empty zip entry by the given compressed bytes. Changes the local header and the central
 * directory of the zip accordingly.
 */
function withEntry(
  whole: Buffer,
  name: string,
  { packed, size }: { packed: Buffer; size: number },
): Buffer {
  const local = whole.lastIndexOf(Buffer.from('PK\x03\x04', 'latin1'))
  const directory = whole.indexOf(Buffer.from('PK\x01\x02', 'latin1'))
  const entry = whole.lastIndexOf(Buffer.from(name), whole.length) - 46
  const end = whole.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'))
  const start = local + 30 + name.length
  const head = Buffer.from(whole.subarray(0, start))
  const tail = Buffer.from(whole.subarray(directory))
  head.writeUInt16LE(8, local + 8)
  head.writeUInt32LE(packed.length, local + 18)
  head.writeUInt32LE(size, local + 22)
  tail.writeUInt16LE(8, entry - directory + 10)
  tail.writeUInt32LE(packed.length, entry - directory + 20)
  tail.writeUInt32LE(size, entry - directory + 24)
  tail.writeUInt32LE(start + packed.length, end - directory + 16)
  return Buffer.concat([head, packed, tail])
}

/** Builds zip archives that are nested inside each other. */
function nestedZips(depth: number): Buffer {
  let inner = zip({ 'zeros.bin': new Uint8Array(10 * MB) })
  for (let level = 0; level < depth; level++) inner = zip({ [`level${level}.zip`]: inner })
  return inner
}

/** Builds a zip directory in which many entries refer to the same content. */
function overlapping(entries: number): Buffer {
  const one = zip({ 'a.txt': 'a'.repeat(1_000) })
  const directory = one.indexOf(Buffer.from('PK\x01\x02', 'latin1'))
  const end = one.indexOf(Buffer.from('PK\x05\x06', 'latin1'))
  const record = one.subarray(directory, end)
  const tail = Buffer.from(one.subarray(end))
  tail.writeUInt16LE(entries, 8)
  tail.writeUInt16LE(entries, 10)
  tail.writeUInt32LE(record.length * entries, 12)
  return Buffer.concat([one.subarray(0, directory), ...Array(entries).fill(record), tail])
}

const TYPES = `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>`
const rels = (target: string) =>
  `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="${target}"/></Relationships>`
const docx = (document: string): Buffer =>
  zip({
    '[Content_Types].xml': TYPES,
    '_rels/.rels': rels('word/document.xml'),
    'word/document.xml': document,
  })

/** Builds XML with nested entities that expand to a thousand million words. */
const LAUGHS = `<?xml version="1.0"?><!DOCTYPE w [<!ENTITY a0 "laugh">${Array.from(
  { length: 9 },
  (_, n) => `<!ENTITY a${n + 1} "${`&a${n};`.repeat(10)}">`,
).join(
  '',
)}]><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>&a9;</w:t></w:r></w:p></w:body></w:document>`

const SPACES = `<?xml version="1.0"?><office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body><office:text><text:p>a<text:s text:c="200000000"/>b</text:p></office:text></office:body></office:document-content>`
const CELLS = `<?xml version="1.0"?><office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body><office:spreadsheet><table:table><table:table-row table:number-rows-repeated="1000000"><table:table-cell table:number-columns-repeated="16000"><text:p>x</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet></office:body></office:document-content>`
const openDocument = (type: string, content: string): Buffer =>
  zip({ mimetype: `application/vnd.oasis.opendocument.${type}`, 'content.xml': content })

const sheet = (): Buffer => {
  const cells = '<c><v>1</v></c>'.repeat(3_000_000)
  return zip({
    '[Content_Types].xml': TYPES,
    '_rels/.rels': rels('xl/workbook.xml'),
    'xl/workbook.xml': `<?xml version="1.0"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
    'xl/worksheets/sheet1.xml': `<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1">${cells}</row></sheetData></worksheet>`,
  })
}

/**
 * Builds a PDF file from the given objects, of which the first is the catalog. If `table` is false, the cross-reference
 * table is wrong.
 */
function pdf(objects: readonly string[], { table = true } = {}): Buffer {
  let text = '%PDF-1.7\n'
  const places: number[] = []
  for (const [n, body] of objects.entries()) {
    places.push(text.length)
    text += `${n + 1} 0 obj\n${body}\nendobj\n`
  }
  const start = text.length
  const rows = places.map((at) => `${String(table ? at : 9_999_999).padStart(10, '0')} 00000 n \n`)
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows.join('')}`
  text += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${table ? start : 7}\n%%EOF\n`
  return Buffer.from(text, 'latin1')
}

const stream = (content: string, more = ''): string =>
  `<< /Length ${content.length} ${more} >>\nstream\n${content}\nendstream`
const FONT = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>'
const WORDS = 'BT /F1 12 Tf 72 720 Td (Manifest) Tj ET'

function pages(count: number, catalog = ''): string[] {
  const first = 5
  const kids = Array.from({ length: count }, (_, n) => `${first + n} 0 R`).join(' ')
  return [
    `<< /Type /Catalog /Pages 2 0 R ${catalog} >>`,
    `<< /Type /Pages /Count ${count} /Kids [${kids}] >>`,
    FONT,
    stream(WORDS),
    ...Array.from(
      { length: count },
      () =>
        '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 3 0 R >> >> >>',
    ),
  ]
}

/** Builds a PDF file of nested forms. Each form draws the next form twice, so a depth of 30 makes 2^30 drawings. */
function formsInForms(depth: number): Buffer {
  const form = (n: number) =>
    stream(
      n === depth ? WORDS : '/X Do /X Do',
      `/Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> ${n === depth ? '' : `/XObject << /X ${n + 6} 0 R >>`} >>`,
    )
  return pdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Count 1 /Kids [4 0 R] >>',
    FONT,
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /XObject << /X 6 0 R >> >> >>',
    stream('/X Do'),
    ...Array.from({ length: depth + 1 }, (_, n) => form(n + 1)),
  ])
}

function nestedMails(depth: number): Buffer {
  let mail = 'Subject: innermost\r\n\r\nHello\r\n'
  for (let level = 0; level < depth; level++) {
    mail = `Subject: ${level}\r\nContent-Type: message/rfc822\r\n\r\n${mail}`
  }
  return Buffer.from(mail)
}

/** Maps a description to the function that builds the described file. */
export const BOMBS: Record<string, () => Bomb> = {
  'zips in zips': () => ({ filename: 'nested.zip', content: nestedZips(12) }),
  'entries that share their bytes': () => ({
    filename: 'overlap.zip',
    content: overlapping(60_000),
  }),
  'a document of 300 MB in a small file': () => ({
    filename: 'letters.docx',
    content: inflating('word/document.xml', 300 * MB, {
      '[Content_Types].xml': TYPES,
      '_rels/.rels': rels('word/document.xml'),
    }),
  }),
  'entities in entities': () => ({ filename: 'laughs.docx', content: docx(LAUGHS) }),
  'elements in elements': () => ({
    filename: 'deep.docx',
    content: docx(`<w:document>${'<w:p>'.repeat(500_000)}`),
  }),
  'three million cells': () => ({ filename: 'cells.xlsx', content: sheet() }),
  'two hundred million blanks': () => ({
    filename: 'blanks.odt',
    content: openDocument('text', SPACES),
  }),
  'repeated rows of repeated cells': () => ({
    filename: 'rows.ods',
    content: openDocument('spreadsheet', CELLS),
  }),
  'a PDF of 10,000 pages': () => ({ filename: 'pages.pdf', content: pdf(pages(10_000)) }),
  'a PDF with a program': () => ({
    filename: 'program.pdf',
    content: pdf(pages(1, '/OpenAction << /S /JavaScript /JS (while (true) {}) >>')),
  }),
  'a PDF with a wrong table': () => ({
    filename: 'table.pdf',
    content: pdf(pages(1), { table: false }),
  }),
  'a PDF of forms in forms': () => ({ filename: 'forms.pdf', content: formsInForms(30) }),
  'a PDF whose pages are their own parents': () => ({
    filename: 'loop.pdf',
    content: pdf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Count 2 /Kids [2 0 R 2 0 R] >>',
    ]),
  }),
  'groups in groups': () => ({
    filename: 'groups.rtf',
    content: Buffer.from(`{\\rtf1${'{'.repeat(3_000_000)}`),
  }),
  'tags in tags': () => ({
    filename: 'tags.html',
    content: Buffer.from('<div><b>'.repeat(1_000_000)),
  }),
  'quotes without end': () => ({
    filename: 'quotes.csv',
    content: Buffer.from('"a,""\n'.repeat(2_000_000)),
  }),
  'mails in mails': () => ({ filename: 'mails.eml', content: nestedMails(2_000) }),
  'a rule that never fits': () => ({
    filename: 'never.ics',
    content: Buffer.from(
      calendarFile({ uid: 'never', lines: ['RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30'] }),
    ),
  }),
  'a rule of every second': () => ({
    filename: 'seconds.ics',
    content: Buffer.from(
      calendarFile({
        uid: 'seconds',
        start: 'DTSTART:15830101T000000Z',
        end: 'DTEND:15830101T000001Z',
        lines: [
          'RRULE:FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23;BYMINUTE=0,1,2,3,4,5,6,7,8,9,10,20,30,40,50,59;BYSECOND=0,1,2,3,4,5,6,7,8,9,10,20,30,40,50,59',
        ],
      }),
    ),
  }),
}
