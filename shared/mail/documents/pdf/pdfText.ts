import { getDocument } from 'unpdf/pdfjs'
import { DocumentError, type DocumentText, TextWriter } from '../document.ts'
import type { Box } from './pdfGeometry.ts'
import { layOut } from './pdfLayout.ts'
import { runsOf } from './pdfRuns.ts'

/** Sets the maximum number of pages that the PDF reader takes from one PDF file. */
const PAGES_MAX = 300
/**
 * Sets the processor time in milliseconds after which the PDF reader begins no further page of a PDF file. The child
 * process may use twice as much time, so that it can finish the current page.
 */
const TIME_MAX_MS = 7_000
/** Sets the maximum number of annotations of one PDF page in which the PDF reader searches for links. */
const ANNOTATIONS_MAX = 200

type Pdf = Awaited<ReturnType<typeof getDocument>['promise']>
type Page = Awaited<ReturnType<Pdf['getPage']>>
type Layers = Awaited<ReturnType<Pdf['getOptionalContentConfig']>>

/** Reads the text of a PDF. The PDF reader renders no page, runs no script and decodes no picture. */
export async function readPdf(bytes: Uint8Array): Promise<DocumentText> {
  const out = new TextWriter()
  const pdf = await openPdf(bytes)
  const layers = await pdf.getOptionalContentConfig().catch(() => null)
  const before = process.cpuUsage()
  for (let n = 1; n <= pdf.numPages; n++) {
    const { user, system } = process.cpuUsage(before)
    if (n > PAGES_MAX || out.isFull || (user + system) / 1000 > TIME_MAX_MS) {
      out.omitted.add('truncated')
      break
    }
    // If one PDF page is damaged, the PDF reader continues with the next page.
    const page = await pdf.getPage(n).catch(() => null)
    if (page === null) continue
    await readPage(page, out, layers).catch(() => {})
    page.cleanup()
  }
  await pdf.loadingTask.destroy()
  return out.done()
}

async function openPdf(bytes: Uint8Array): Promise<Pdf> {
  try {
    return await getDocument({
      // The PDF library takes ownership of the buffer that it gets. Therefore it gets a copy of the file's bytes.
      data: new Uint8Array(bytes),
      useSystemFonts: false,
      disableFontFace: true,
      enableXfa: false,
      stopAtErrors: false,
      maxImageSize: 1,
      verbosity: 0,
    }).promise
  } catch (error) {
    const isLocked = (error as Error)?.name === 'PasswordException'
    throw new DocumentError(isLocked ? 'encrypted' : 'malformed')
  }
}

async function readPage(page: Page, out: TextWriter, layers: Layers | null): Promise<void> {
  const { fnArray, argsArray } = await page.getOperatorList()
  const runs = runsOf({
    fnArray,
    argsArray,
    view: page.view as unknown as Box,
    rotate: page.rotate,
    fontOf: (name) => {
      try {
        return page.commonObjs.get(name)
      } catch {
        return null
      }
    },
    isShown: (layer) => layers === null || layers.isVisible(layer as never),
  })
  for (const { unseen, text } of runs)
    if (unseen !== null && text.trim() !== '') out.omitted.add(unseen)
  const laidOut = layOut(runs.filter(({ unseen }) => unseen === null))
  out.write(`${withoutRadicals(laidOut)}\n`)
  const notes: Annotation[] = await page.getAnnotations().catch(() => [])
  for (const { subtype, url, contentsObj } of notes.slice(0, ANNOTATIONS_MAX)) {
    if (subtype === 'Link' && typeof url === 'string') out.link(url, '')
    else if (subtype !== 'Link' && subtype !== 'Widget' && subtype !== 'FreeText') {
      if ((contentsObj?.str ?? '') !== '') out.omitted.add('comments')
    }
  }
}

/**
 * Replaces Han radicals by the letters that look the same. For example, some PDF writers use the radical U+2F24 in
 * place of the letter U+5927.
 */
const withoutRadicals = (text: string): string =>
  text.replace(/[\u2e80-\u2fd5]/g, (letter) => letter.normalize('NFKC'))

type Annotation = { subtype?: string; url?: string; contentsObj?: { str?: string } }
