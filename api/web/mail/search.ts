import { at } from '../kit/ask.ts'
import { type Child, h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { list, nothingFound } from '../kit/list/list.ts'
import type { ShownList } from '../kit/list/pages.ts'
import { projectLink } from '../kit/screen.ts'
import type { FoundMessage, Highlight, Project } from '../kit/types.ts'
import { labelBadges } from './labels.ts'
import { messageChoosing } from './manyMails.ts'

/** Sets the maximum number of characters of the excerpt that the console shows if no match is in the message's text. */
const BEGINNING = 160
/** Sets the maximum number of characters of a search query. The service itself has the same limit on a search query. */
export const QUERY_MAX_LENGTH = 500

/** Shows the search results, newest first, with links to their threads. */
export const foundList = (
  project: Project,
  {
    query,
    signal,
    clear,
  }: { query: Record<string, string>; signal: AbortSignal; clear: () => void },
): ShownList =>
  list<'messages', FoundMessage>({
    label: 'Messages found',
    name: 'messages',
    signal,
    path: at`/projects/${project.projectId}/v0/messages`,
    fixed: query,
    choosing: messageChoosing(project.projectId),
    none: () =>
      nothingFound(clear, {
        action: 'Show all mail',
        hint: [
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
      }),
    columns: [
      { name: 'Subject', kind: 'main', cell: (message) => found(project, message) },
      { name: 'From or to', cell: ({ from, to, labels }) => correspondent(from, to, labels) },
      { name: 'When', cell: ({ createdAt }) => moment(createdAt) },
    ],
  })

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

/**
 * Makes a text with highlighted search matches. It consists of text nodes only, so that the browser never parses
 * third-party text as markup.
 */
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

/** Maps the search matches in the excerpts of a text to their positions in the whole text. */
const within = (whole: string, pieces: readonly Highlight[]): Ranges =>
  pieces.flatMap(({ text, ranges }) => {
    const offset = whole.indexOf(text)
    return offset === -1
      ? []
      : ranges.map(([start, end]): [number, number] => [start + offset, end + offset])
  })
