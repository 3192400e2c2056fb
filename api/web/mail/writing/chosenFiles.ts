import { h, replaceContent } from '../../kit/dom.ts'
import { bytes } from '../../kit/format.ts'
import { button } from '../../kit/ui.ts'

type Stored = { filename: string; size: number }
type Attachment = { filename: string; contentType: string; content: string }

let inputs = 0

/** Sets the maximum number of bytes that one call of `String.fromCharCode` converts. */
const CHUNK = 8_192

async function toBase64(file: File): Promise<string> {
  const all = new Uint8Array(await file.arrayBuffer())
  let text = ''
  for (let at = 0; at < all.length; at += CHUNK) {
    text += String.fromCharCode(...all.subarray(at, at + CHUNK))
  }
  return btoa(text)
}

/**
 * Holds the files that the user attaches to a mail. For a reopened draft, the console page knows only the names of the
 * files, so new files replace all old files.
 * @param changed is called whenever the user changes the files.
 */
export function chosenFiles(stored: readonly Stored[], changed: () => void) {
  let files: (Attachment & { size: number })[] | null = null
  let sent: Attachment[] | undefined
  let reading: Promise<void> = Promise.resolve()
  const id = `files-${++inputs}`
  const list = h('ul', { class: 'attachments', 'aria-label': 'Chosen files' })
  const draw = (): void => {
    const shown: readonly Stored[] = files ?? stored
    list.hidden = shown.length === 0
    replaceContent(
      list,
      shown.map((file, n) =>
        h(
          'li',
          {},
          h('bdi', {}, file.filename),
          h('span', { class: 'note' }, ` ${bytes(file.size)} `),
          button('Remove', () => remove(n), {
            label: `Remove ${file.filename}`,
            keep: `remove file ${n}`,
          }),
        ),
      ),
    )
  }
  const remove = (n: number): void => {
    // The browser does not have the content of files that only the service stores. Therefore, if the user removes one
    // of them, the console page removes all of them.
    files = files === null ? [] : files.filter((_, at) => at !== n)
    tell()
  }
  const add = async (chosen: readonly File[]): Promise<void> => {
    const added = await Promise.all(
      chosen.map(async (file) => ({
        filename: file.name,
        contentType: file.type === '' ? 'application/octet-stream' : file.type,
        content: await toBase64(file),
        size: file.size,
      })),
    )
    files = [...(files ?? []), ...added]
    tell()
  }
  const input = h('input', {
    type: 'file',
    multiple: true,
    id,
    'aria-describedby': `${id}-help`,
    on: {
      change: () => {
        const chosen = [...(input.files ?? [])]
        input.value = ''
        reading = Promise.all([reading, add(chosen)]).then(() => {})
        reading.catch(() => {})
      },
    },
  })
  const tell = (): void => {
    sent = files?.map(({ filename, contentType, content }) => ({ filename, contentType, content }))
    draw()
    changed()
  }
  draw()
  return {
    element: h(
      'div',
      { class: 'field' },
      h('label', { for: id }, 'Attachments'),
      input,
      h(
        'p',
        { class: 'help', id: `${id}-help` },
        stored.length === 0
          ? '25 MB at most, together.'
          : 'New files take the place of those of the draft. Removing one removes all of them.',
      ),
      list,
    ),
    /** Waits until the browser has read all chosen files. @throws {DOMException} for a file that it cannot read. */
    whenRead: (): Promise<void> => {
      const read = reading
      reading = Promise.resolve()
      return read
    },
    /**
     * Returns the files that the page sends to the service, as the same array until the user changes the files. Returns
     * `undefined` if the draft keeps the files that the service has stored.
     */
    read: (): Attachment[] | undefined => sent,
  }
}
