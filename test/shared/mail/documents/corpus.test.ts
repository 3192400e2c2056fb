/**
 * Reads documents that real programs made, and compares the extracted text with the text that a person would expect.
 * The documents in `strangers/` come from an author who had not seen the code of this service. In the same folder, the
 * file MADE.md names the program that made each document.
 */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readDocument } from '../../../../shared/mail/documents/readDocument.ts'
import { expectRecorded, recordedLine } from '../../../support/recorded.ts'

const FOLDER = 'test/fixtures/documents'

type Expected = {
  file: string
  contentType: string
  state: 'ready' | 'none' | 'failed'
  reason?: string
  /** Lists the phrases that the text must contain in reading order. */
  contains?: string[]
  absent?: string[]
  omitted?: string[]
  links?: string[]
  codes?: string[]
  /** Lists the phrases that the text must contain at any place. */
  anywhere?: string[]
}

/** Replaces white space within a line by one blank, and keeps the tabs between cells. */
const plain = (text: string): string =>
  text
    .replace(/[^\S\t\n]+/g, ' ')
    .replace(/ *\t */g, '\t')
    .replace(/ *\n */g, '\n')

const reads = new Map<string, ReturnType<typeof readDocument>>()

/** Reads a test document at the first call, and returns the stored result at each later call. */
function readOnce(set: string, { file: filename, contentType }: Expected) {
  const path = join(FOLDER, set, filename)
  const read =
    reads.get(path) ??
    readDocument(new Uint8Array(readFileSync(path)), { filename, contentType }, Date.now())
  reads.set(path, read)
  return read
}

/** Lists the expected phrases that the text of a file lacks, and the unwanted phrases that it contains. */
async function differences(set: string, expected: Expected): Promise<string[]> {
  const read = await readOnce(set, expected)
  const found: string[] = []
  if (read.state !== expected.state) found.push(`state ${read.state}`)
  const reason = read.state === 'failed' ? read.reason : undefined
  if (expected.reason !== undefined && reason !== expected.reason) found.push(`reason ${reason}`)
  if (read.state !== 'ready') return found
  const text = plain(read.text)
  // A line break may divide an expected phrase, so the comparison treats line breaks as blanks.
  const flat = text.replaceAll('\n', ' ')
  let from = 0
  for (const phrase of expected.contains ?? []) {
    const wanted = plain(phrase).replaceAll('\n', ' ')
    const at = flat.indexOf(wanted, from)
    if (at >= 0) from = at + wanted.length
    else found.push(`${flat.includes(wanted) ? 'order of' : 'lacks'} ${JSON.stringify(phrase)}`)
  }
  for (const phrase of expected.anywhere ?? []) {
    const wanted = plain(phrase).replaceAll('\n', ' ')
    if (!flat.includes(wanted)) found.push(`lacks ${JSON.stringify(phrase)}`)
  }
  for (const phrase of expected.absent ?? []) {
    if (flat.includes(plain(phrase))) found.push(`holds ${JSON.stringify(phrase)}`)
  }
  for (const kind of expected.omitted ?? []) {
    if (!(read.omitted as string[]).includes(kind)) found.push(`does not name ${kind}`)
  }
  const hrefs = read.links.map(({ href }) => href.replace(/\/$/, ''))
  for (const link of expected.links ?? []) {
    if (!hrefs.includes(link.replace(/\/$/, ''))) found.push(`lacks the link ${link}`)
  }
  const codes = read.codes.map(({ value }) => value)
  for (const code of expected.codes ?? []) {
    if (!codes.includes(code)) found.push(`lacks the code ${code}`)
  }
  return found
}

/** Maps each file whose text differs from the expected text to the reason of the difference. */
const MISSED: Readonly<Record<string, string>> = {
  'strangers/csv-windows-1252.csv': 'a file without a charset, whose letters fit two of them',
  'strangers/eml-nested.eml': 'the head of a mail shows addresses, without names',
  'strangers/html-czech-hand.html': 'all that a page hides is named hidden-text',
  'strangers/pdf-footnotes-ligatures-lo.pdf':
    'a hyphen at the end of a line stays, because it may belong to the word',
  'strangers/pdf-hindi-thai-lo.pdf': 'vowel signs that the writer of the file stored twice',
  'strangers/pdf-two-columns-chromium.pdf':
    'soft hyphens that the file draws as words of their own',
  'strangers/pdf-two-columns-reportlab.pdf':
    'columns that are told apart by less than the gap of a table, and hyphens',
  'strangers/rtf-vanish-lo.rtf': 'white letters on a shaded paragraph',
}

const sets = readdirSync(FOLDER, { withFileTypes: true }).filter((one) => one.isDirectory())

for (const { name: set } of sets) {
  const lines = readFileSync(join(FOLDER, set, 'expected.jsonl'), 'utf8')
    .trim()
    .split('\n')
  const files = lines.map((line): Expected => JSON.parse(line))
  test(`the test set ${set} has more than ten documents`, () => {
    expect(files.length).toBeGreaterThan(10)
  })
  for (const expected of files) {
    const isMissed = MISSED[`${set}/${expected.file}`] !== undefined
    test(`the text extracted from ${set}/${expected.file} ${isMissed ? 'still differs from' : 'equals'} the expected text`, async () => {
      const found = await differences(set, expected)
      if (isMissed) expect(found).not.toEqual([])
      else expect(found).toEqual([])
    })
  }
  test(`for each document of the test set ${set}, extraction finds the recorded text, links, codes and omissions`, async () => {
    const lines = files.map(async (one) => recordedLine([one.file, await readOnce(set, one)]))
    expectRecorded(`documents/${set}/read.jsonl`, await Promise.all(lines))
  })
}

test('slides are numbered by their position in the presentation, and hidden slides are counted too', async () => {
  const numbersOf = async (filename: string) => {
    const bytes = new Uint8Array(readFileSync(join(FOLDER, 'strangers', filename)))
    const read = await readDocument(bytes, { filename, contentType: '' }, Date.now())
    return read.state === 'ready' ? read.text.match(/^Slide \d+$/gm) : read.state
  }
  expect(await numbersOf('pptx-table-lo.pptx')).toEqual(['Slide 1', 'Slide 2'])
  expect(await numbersOf('pptx-hindi-lo.pptx')).toEqual(['Slide 1', 'Slide 3'])
})
