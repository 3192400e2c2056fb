import { ask, save } from '../../kit/ask.ts'
import { type Child, h } from '../../kit/dom.ts'
import { bytes } from '../../kit/format.ts'
import type { Attachment, AttachmentPage, Message } from '../../kit/types.ts'
import { button } from '../../kit/ui.ts'

/** Sets the maximum number of characters of an attachment's text that the console shows. */
const SHOWN_CHARS = 20_000

const WHY: Readonly<Record<string, string>> = {
  malformed: 'it is damaged',
  encrypted: 'it needs a password',
  too_large: 'it is too large',
  too_slow: 'it took too much time or memory',
}

/**
 * Shows the attachments of a message, each with its text beside it.
 * @param shown holds the attachment texts that the user has opened. They stay open when the console redraws the thread.
 */
export function attachmentList(
  base: string,
  { messageId, attachments }: Message,
  shown: Map<string, HTMLElement>,
): Child {
  if (attachments.length === 0) return null
  return h(
    'ul',
    { class: 'attachments', 'aria-label': 'Attachments' },
    attachments.map((one) => {
      const { attachmentId, filename, contentType, size } = one
      const key = `${messageId} ${attachmentId}`
      const place = shown.get(key) ?? h('div', { class: 'file-text' })
      shown.set(key, place)
      const path = `${base}/attachments/${encodeURIComponent(attachmentId)}`
      return h(
        'li',
        {},
        button(
          ['⤓ ', h('bdi', {}, filename || 'unnamed')],
          () => save(path, filename || 'attachment'),
          { keep: `${base} ${attachmentId}` },
        ),
        h('span', { class: 'note' }, ` ${contentType}, ${bytes(size)} `),
        textOf(one, path, place),
        place,
      )
    }),
  )
}

function textOf({ attachmentId, text }: Attachment, path: string, place: HTMLElement): Child {
  if (text === undefined || text.state === 'none') return null
  if (text.state === 'pending') return h('span', { class: 'note' }, 'its text is being read')
  if (text.state === 'failed') {
    const why = WHY[text.reason ?? ''] ?? 'it cannot be read'
    return h('span', { class: 'note' }, `no text: ${why}`)
  }
  return button(
    'Text',
    async () => {
      if (place.childNodes.length > 0) return place.replaceChildren()
      const page = await ask<AttachmentPage>(`${path}/text?limit=${SHOWN_CHARS}`, {})
      place.replaceChildren(
        h(
          'pre',
          { class: 'text', dir: 'auto', tabindex: 0, role: 'region', 'aria-label': 'Text' },
          page.text ?? '',
        ),
        ...(page.omitted.length === 0
          ? []
          : [h('p', { class: 'note' }, `Left out: ${page.omitted.join(', ')}.`)]),
        ...(page.nextOffset === undefined
          ? []
          : [h('p', { class: 'note' }, 'Only the beginning is shown.')]),
      )
    },
    { keep: `${path} ${attachmentId} text` },
  )
}
