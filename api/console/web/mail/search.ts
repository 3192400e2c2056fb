import { at } from '../kit/ask.ts'
import { type Child, h } from '../kit/dom.ts'
import { moment, plural } from '../kit/format.ts'
import { liveList } from '../kit/live.ts'
import { projectLink } from '../kit/screen.ts'
import type { FoundMessage, Highlight, Project } from '../kit/types.ts'
import { button, empty, table } from '../kit/ui.ts'
import { labelBadges } from './labels.ts'

/** Of a message that was found by its sender or a file, so much is shown. */
const BEGINNING = 160
/** The service takes no longer query. */
const QUERY_MAX_LENGTH = 500
const PAGE_SIZE = 20

/** Where words to look for in an inbox are typed; told of them when they are to be looked for, of `''` for no more. */
export function searchBox(q: string, search: (q: string) => void): HTMLElement {
  const input = h('input', {
    type: 'search',
    name: 'q',
    value: q,
    maxlength: QUERY_MAX_LENGTH,
    placeholder: 'Search mail',
    'aria-label': 'Search mail',
    autocomplete: 'off',
    'data-keep': 'search',
    // The browser’s own way to empty the field sends nothing.
    on: { input: () => input.value === '' && search('') },
  })
  return h(
    'form',
    {
      role: 'search',
      class: 'search',
      on: {
        submit: (event) => {
          event.preventDefault()
          search(input.value.trim())
        },
      },
    },
    input,
    h('button', { type: 'submit', class: 'button' }, 'Search'),
  )
}

/** What was found at the moment of asking, newest first; each leads to its thread. */
export function foundList(
  project: Project,
  { q, signal, clear }: { q: string; signal: AbortSignal; clear: () => void },
): HTMLElement {
  return liveList<'messages', FoundMessage>({
    name: 'messages',
    signal,
    path: at`/projects/${project.projectId}/v0/messages`,
    query: { q, limit: String(PAGE_SIZE) },
    none: () =>
      empty(
        'Nothing found',
        [
          'All words must be in one message. Also: ',
          h('code', {}, '"a phrase"'),
          ', ',
          h('code', {}, '-without'),
          ', ',
          h('code', {}, 'one OR other'),
          ', ',
          h('code', {}, 'begin*'),
          '.',
        ],
        button('Show all mail', clear),
      ),
    draw: (messages) => [
      h('p', { class: 'note', role: 'status' }, `${plural(messages.length, 'message')} shown`),
      table(
        'Messages found',
        [
          { name: 'Subject', kind: 'main', cell: (message) => found(project, message) },
          { name: 'From or to', cell: ({ from, to, labels }) => correspondent(from, to, labels) },
          { name: 'When', cell: ({ createdAt }) => moment(createdAt) },
        ],
        messages,
      ),
    ],
  }).element
}

const correspondent = (from: string[], to: string[], labels: string[]): string =>
  labels.includes('sent') ? `to ${to.join(', ') || 'nobody named'}` : from.join(', ') || '–'

const found = (project: Project, message: FoundMessage): Child => [
  h(
    'a',
    {
      href: projectLink(project.projectId, 'inbox', message.threadId),
      'data-keep': message.messageId,
      dir: 'auto',
    },
    message.subject.trim() === ''
      ? '(no subject)'
      : marked(message.subject, within(message.subject, message.highlights.subject)),
  ),
  labelBadges(message.labels),
  h(
    'p',
    { class: 'note found', dir: 'auto' },
    message.highlights.text.length === 0
      ? message.text.slice(0, BEGINNING)
      : message.highlights.text.map(({ text, ranges }, n) => [
          n === 0 ? null : ' … ',
          marked(text, ranges),
        ]),
  ),
]

type Ranges = Highlight['ranges']

/** A text with what was found in it marked, as nodes: what a stranger wrote stays text. */
function marked(text: string, ranges: Ranges): Child[] {
  const parts: Child[] = []
  let done = 0
  for (const [start, end] of ranges) {
    if (start < done) continue
    parts.push(text.slice(done, start), h('mark', {}, text.slice(start, end)))
    done = end
  }
  return [...parts, text.slice(done)]
}

/** The ranges of pieces of a text, in the whole text. */
const within = (whole: string, pieces: readonly Highlight[]): Ranges =>
  pieces.flatMap(({ text, ranges }) => {
    const offset = whole.indexOf(text)
    return offset === -1
      ? []
      : ranges.map(([start, end]): [number, number] => [start + offset, end + offset])
  })
