/**
 * Shows all pages of a held mail, one after the other. Together with the last page, the service returns a seal (a
 * signed proof), which allows the approval.
 */
import { ask, at } from '../kit/ask.ts'
import { h, replaceContent } from '../kit/dom.ts'
import { connection, OfflineError } from '../kit/offline.ts'
import type { HeldRequest, Project } from '../kit/types.ts'
import { button, notice } from '../kit/ui.ts'

/** Describes one page of a mail that waits for approval. */
type ReviewPage = {
  page: number
  pages: number
  sections: { title: string; note?: string; pieces: { text: string; mark?: string }[] }[]
  obstacles: string[]
  seal: string
  hasHtml: boolean
}

type Letter = NonNullable<HeldRequest['message']>

/**
 * Shows the pages of a held mail (a mail that waits for approval).
 * @param whole is called with the seal (a signed proof) of the last page, but only if the pages show every part of the
 *   mail.
 */
export function review(
  project: Project,
  { held, message, signal }: { held: HeldRequest; message: Letter; signal: AbortSignal },
  whole: (seal: string) => void,
): HTMLElement {
  const element = h('div', { class: 'body' }, h('p', { class: 'loading' }, 'Loading…'))
  const path = at`/projects/${project.projectId}/held/${held.approvalId}/review`
  const show = async (page: number, seen: string) => {
    const found = await ask<ReviewPage>(`${path}?page=${page}&seen=${encodeURIComponent(seen)}`, {
      signal,
    }).catch((error: unknown) => {
      if (signal.aborted) return null
      throw error
    })
    if (found === null) return
    replaceContent(element, draw(project, message, found, show))
    if (found.page === found.pages && found.obstacles.length === 0) whole(found.seal)
  }
  const begin = async (): Promise<void> => {
    try {
      await show(1, '')
    } catch (error) {
      replaceContent(
        element,
        notice('bad', error instanceof Error ? error.message : String(error)),
        button('Try again', begin, { keep: 'again' }),
      )
      if (!(error instanceof OfflineError)) return
      connection.addEventListener('back', () => void begin(), { once: true, signal })
    }
  }
  void begin()
  return element
}

const draw = (
  project: Project,
  { messageId }: Letter,
  { page, pages, sections, obstacles, seal, hasHtml }: ReviewPage,
  show: (page: number, seen: string) => Promise<void>,
) => [
  obstacles.length === 0
    ? null
    : notice(
        'bad',
        `This mail cannot be approved here, because it cannot be shown whole: ${obstacles.join('; ')}. Reject or edit it, or approve its bytes with a platform key.`,
      ),
  h('p', { class: 'note' }, `Page ${page} of ${pages}`),
  hasHtml && page === 1
    ? [
        h('h3', {}, 'HTML part as a browser draws it'),
        // The frame allows no scripts and has an opaque origin, so that the mail cannot access the console.
        h('iframe', {
          class: 'mail',
          sandbox: '',
          src: `/console/api${at`/projects/${project.projectId}/messages/${messageId}/html`}`,
          title: 'HTML body of the message',
          referrerpolicy: 'no-referrer',
        }),
      ]
    : null,
  sections.map(({ title, note, pieces }) => [
    h('h3', {}, title),
    note === undefined ? null : h('p', { class: 'note' }, note),
    h(
      'pre',
      { class: 'text', dir: 'auto', tabindex: '0', role: 'region', 'aria-label': title },
      pieces.map(({ text, mark }) =>
        mark === undefined ? text : h('mark', { title: mark }, text),
      ),
    ),
  ]),
  page === pages
    ? null
    : button(`Read page ${page + 1} of ${pages}`, () => show(page + 1, seal), { keep: 'next' }),
]
