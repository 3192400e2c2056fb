import { ask, at } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { count, moment } from '../kit/format.ts'
import { type Filter, toQuery } from '../kit/list/filters.ts'
import { filteredList } from '../kit/list/list.ts'
import { ofProject, projectLink } from '../kit/screen.ts'
import type { Message, Project, Thread } from '../kit/types.ts'
import { badge, button, deliveryBadge, empty, notice, toast } from '../kit/ui.ts'
import { messageChoosing, threadChoosing } from './manyMails.ts'
import { foundList, QUERY_MAX_LENGTH } from './search.ts'
import { writeMail } from './writing/compose.ts'

const REFRESH_MS = 2_000

const FILTERS: readonly Filter[] = [
  { kind: 'search', name: 'q', label: 'Search mail', maxLength: QUERY_MAX_LENGTH },
  { kind: 'text', name: 'from', label: 'From' },
  { kind: 'text', name: 'to', label: 'To' },
  { kind: 'text', name: 'labels', label: 'Label' },
  { kind: 'dates' },
]

/** Shows the email threads of a project. If a filter is set, the screen shows the messages that match the filter. */
export const inbox = ofProject('inbox', (project, { signal, query }) => {
  const { projectId } = project
  const write = button('Write', () => writeMail(project), { needs: 'owner', keep: 'write' })
  return filteredList<'threads', Thread>({
    label: 'Threads',
    name: 'threads',
    signal,
    everyMs: REFRESH_MS,
    path: at`/projects/${projectId}/threads`,
    here: projectLink(projectId, 'inbox'),
    query,
    filters: FILTERS,
    tools: write,
    choosing: threadChoosing(projectId),
    instead: (given, signals, clear) =>
      Object.keys(given).length === 0
        ? null
        : foundList(project, { query: toQuery(FILTERS, given), signal: signals, clear }),
    none: () =>
      empty('No mail yet', ['Mail to ', h('code', {}, project.emailAddress), ' appears here.']),
    columns: [
      {
        name: 'Subject',
        kind: 'main',
        cell: ({ threadId, subject, snippet, unread }) => [
          h(
            'a',
            {
              href: projectLink(project.projectId, 'inbox', threadId),
              'data-keep': threadId,
              dir: 'auto',
            },
            subject.trim() === '' ? '(no subject)' : subject,
          ),
          unread === true ? [' ', badge('unread')] : null,
          h('p', { class: 'note snippet', dir: 'auto' }, snippet),
        ],
      },
      { name: 'Latest from', cell: ({ from }) => from?.join(', ') ?? '–' },
      { name: 'Messages', kind: 'num', cell: ({ messageCount }) => count(messageCount) },
      { name: 'Latest', cell: ({ updatedAt }) => moment(updatedAt) },
    ],
  }).element
})

/** Lists the delivery states of a mail that has not been sent yet. */
const WAITING = ['scheduled', 'held']

const cancel = async (project: Project, { messageId }: Message): Promise<void> => {
  await ask(at`/projects/${project.projectId}/v0/messages/${messageId}/cancel`, { method: 'POST' })
  toast('Cancelled; it is not sent')
}

const STATES: readonly string[] = [
  ...['queued', 'deferred', 'sent', 'bounced', 'failed'],
  ...['scheduled', 'held', 'cancelled', 'rejected', 'expired'],
]

const OUTGOING_FILTERS: readonly Filter[] = [
  { kind: 'search', name: 'q', label: 'Search mail', maxLength: QUERY_MAX_LENGTH },
  {
    kind: 'choice',
    name: 'deliveryStatus',
    label: 'Delivery',
    options: [['', 'any'], ...STATES.map((state): [string, string] => [state, state])],
  },
  { kind: 'text', name: 'to', label: 'To' },
  { kind: 'dates' },
]

/** Shows the sent messages of a project with their delivery state. */
export const outgoing = ofProject('outgoing', (project, { signal, session, query }) => [
  session.capturesMail
    ? notice(
        'info',
        'Outgoing mail is captured: it is stored, but not sent. Set ',
        h('code', {}, 'SMTP_RELAY_URL'),
        ' to send it.',
      )
    : null,
  filteredList<'messages', Message>({
    label: 'Outgoing mail',
    name: 'messages',
    here: projectLink(project.projectId, 'outgoing'),
    query,
    filters: OUTGOING_FILTERS,
    choosing: messageChoosing(project.projectId),
    signal,
    everyMs: REFRESH_MS,
    path: at`/projects/${project.projectId}/outgoing`,
    none: () =>
      empty('Nothing sent yet', 'Mail of the agent appears here with its delivery state.'),
    columns: [
      {
        name: 'Subject',
        kind: 'main',
        cell: ({ threadId, messageId, subject }) =>
          h(
            'a',
            {
              href: projectLink(project.projectId, 'inbox', threadId),
              'data-keep': messageId,
              dir: 'auto',
            },
            subject.trim() === '' ? '(no subject)' : subject,
          ),
      },
      { name: 'To', cell: ({ to, cc }) => [...to, ...cc].join(', ') },
      {
        name: 'Delivery',
        cell: ({ deliveryStatus, deliveryError, sendAt }) => [
          deliveryBadge(deliveryStatus ?? 'queued', session.capturesMail),
          deliveryError == null ? null : h('p', { class: 'note' }, deliveryError),
          deliveryStatus === 'scheduled' && sendAt !== undefined
            ? h('p', { class: 'note' }, 'leaves ', moment(sendAt))
            : null,
        ],
      },
      { name: 'When', cell: ({ createdAt }) => moment(createdAt) },
      {
        name: 'Action',
        kind: 'end',
        cell: (message) =>
          WAITING.includes(message.deliveryStatus ?? '')
            ? button('Cancel', () => cancel(project, message), {
                keep: `cancel ${message.messageId}`,
                label: `Cancel ${message.subject}`,
                needs: 'owner',
              })
            : null,
      },
    ],
  }).element,
])
