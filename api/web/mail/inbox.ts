import { ask, at } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { count, moment } from '../kit/format.ts'
import { liveList } from '../kit/live.ts'
import { ofProject, projectLink } from '../kit/screen.ts'
import type { Message, Project, Thread } from '../kit/types.ts'
import { badge, button, deliveryBadge, empty, notice, table, toast } from '../kit/ui.ts'
import { writeMail } from './compose.ts'
import { foundList, searchBox } from './search.ts'

const REFRESH_MS = 2_000

/** The threads of a project, or the results of a search. */
export const inbox = ofProject('inbox', (project, { signal, query }) => {
  const shown = h('div', { class: 'live' })
  let leave = new AbortController()
  const show = (q: string): void => {
    leave.abort()
    leave = new AbortController()
    const signals = AbortSignal.any([signal, leave.signal])
    shown.replaceChildren(
      q === '' ? threadList(project, signals) : foundList(project, { q, signal: signals, clear }),
    )
  }
  // The address holds the search: Back from a message returns to the results.
  const search = (q: string): void => {
    const here = projectLink(project.projectId, 'inbox')
    const there = q === '' ? here : `${here}?${new URLSearchParams({ q })}`
    if (there !== location.hash) history.pushState(null, '', there)
    show(q)
  }
  const clear = (): void => {
    const input = box.querySelector('input')!
    input.value = ''
    input.focus()
    search('')
  }
  const box = searchBox(query.get('q') ?? '', search)
  show(query.get('q') ?? '')
  const write = button('Write', () => writeMail(project), { needs: 'owner', keep: 'write' })
  return [h('div', { class: 'actions' }, write), box, shown]
})

const threadList = (project: Project, signal: AbortSignal): HTMLElement =>
  liveList<'threads', Thread>({
    name: 'threads',
    signal,
    everyMs: REFRESH_MS,
    path: at`/projects/${project.projectId}/threads`,
    none: () =>
      empty('No mail yet', ['Mail to ', h('code', {}, project.emailAddress), ' appears here.']),
    draw: (threads) =>
      table(
        'Threads',
        [
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
        threads,
      ),
  }).element

/** The states of a mail that has not left. */
const WAITING = ['scheduled', 'held']

const cancel = async (project: Project, { messageId }: Message): Promise<void> => {
  await ask(at`/projects/${project.projectId}/v0/messages/${messageId}/cancel`, { method: 'POST' })
  toast('Cancelled; it is not sent')
}

/** The sent messages of a project, with their delivery state. */
export const outgoing = ofProject('outgoing', (project, { signal, session }) => [
  session.capturesMail
    ? notice(
        'info',
        'Outgoing mail is captured: it is stored, but not sent. Set ',
        h('code', {}, 'SMTP_RELAY_URL'),
        ' to send it.',
      )
    : null,
  liveList<'messages', Message>({
    name: 'messages',
    signal,
    everyMs: REFRESH_MS,
    path: at`/projects/${project.projectId}/outgoing`,
    none: () =>
      empty('Nothing sent yet', 'Mail of the agent appears here with its delivery state.'),
    draw: (messages) =>
      table(
        'Outgoing mail',
        [
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
        messages,
      ),
  }).element,
])
