import { ask, askBytes, at, save } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { moment, plural } from '../kit/format.ts'
import { live } from '../kit/live.ts'
import { ofProject, projectLink } from '../kit/screen.ts'
import { setTitle } from '../kit/title.ts'
import type { Message, Project, WholeThread } from '../kit/types.ts'
import { button, copyable, copyButton, deliveryBadge, notice } from '../kit/ui.ts'
import { aside } from './aside.ts'
import { authenticationBadges, labelBadges } from './labels.ts'
import { answerMail } from './writing/compose.ts'

const REFRESH_MS = 3_000
/**
 * Sets the maximum number of characters of a message's original that the console shows. The user can download the whole
 * original of the message.
 */
const RAW_SHOWN = 200_000

/** Shows one email thread, and does not mark the messages of the thread as read. */
export const thread = ofProject('inbox', (project, { params, signal, session }) => {
  const threadId = params[1]!
  // The console keeps the drawn message bodies. Therefore it does not redraw an open message when new messages arrive
  // in the thread.
  const bodies = new Map<string, HTMLElement>()
  return live({
    signal,
    everyMs: REFRESH_MS,
    load: (watching) =>
      ask<WholeThread>(at`/projects/${project.projectId}/threads/${threadId}`, {
        watching,
        signal,
      }),
    draw: (whole) => {
      setTitle(subjectOf(whole), project.name)
      return [
        h(
          'header',
          { class: 'thread' },
          h(
            'a',
            { class: 'back', href: projectLink(project.projectId, 'inbox'), 'data-keep': 'back' },
            '← Inbox',
          ),
          h('h2', { dir: 'auto' }, subjectOf(whole)),
          h('p', { class: 'note' }, plural(whole.totalMessages, 'message')),
        ),
        whole.messages.length < whole.totalMessages
          ? notice('info', `The newest ${whole.messages.length} messages are shown.`)
          : null,
        whole.messages.map((message) =>
          messageCard(project, message, {
            bodies,
            hasHtml: whole.withHtml.includes(message.messageId),
            captured: session.capturesMail,
          }),
        ),
      ]
    },
  }).element
})

const subjectOf = ({ subject }: WholeThread): string =>
  subject.trim() === '' ? '(no subject)' : subject

function messageCard(
  project: Project,
  message: Message,
  {
    bodies,
    hasHtml,
    captured,
  }: { bodies: Map<string, HTMLElement>; hasHtml: boolean; captured: boolean },
): HTMLElement {
  const base = at`/projects/${project.projectId}/v0/messages/${message.messageId}`
  const html = at`/projects/${project.projectId}/messages/${message.messageId}/html`
  const key = message.messageId
  const body = bodies.get(key) ?? h('div', { class: 'body' }, textOf(message))
  bodies.set(key, body)
  return h(
    'article',
    { class: 'panel message', 'aria-label': `Message from ${message.from.join(', ')}` },
    h(
      'header',
      {},
      h('p', { class: 'from' }, message.from.join(', ') || '(no sender)'),
      h('p', { class: 'note' }, moment(message.createdAt)),
      h(
        'p',
        { class: 'note wide' },
        `to ${[...message.to, ...message.cc].join(', ') || 'nobody named'}`,
      ),
      message.deliveryStatus === undefined
        ? null
        : h(
            'p',
            { class: 'wide' },
            deliveryBadge(message.deliveryStatus, captured),
            message.deliveryError == null ? null : ` ${message.deliveryError}`,
          ),
      h(
        'div',
        { class: 'wide signs' },
        labelBadges(message.labels, message.deliveryStatus),
        copyable(message.messageId, h('span', { class: 'note' }, 'Message-ID')),
        message.authentication === undefined ? null : authenticationBadges(message.authentication),
      ),
    ),
    h(
      'div',
      { class: 'beside' },
      h('div', { class: 'letter' }, body),
      aside(project, message, { base, places: bodies }),
    ),
    h(
      'footer',
      { class: 'actions' },
      button('Answer', () => answerMail(project, message, false), {
        keep: `answer ${key}`,
        needs: 'owner',
      }),
      message.to.length + message.cc.length > 1
        ? button('Answer all', () => answerMail(project, message, true), {
            keep: `all ${key}`,
            needs: 'owner',
          })
        : null,
      hasHtml
        ? button('HTML', () => view(body, 'html', [frame(html)]), {
            keep: `html ${key}`,
            title: 'In a sandbox, with nothing loaded from elsewhere',
          })
        : null,
      button('Text', () => view(body, 'text', textOf(message)), { keep: `text ${key}` }),
      button('Raw', () => showRaw(body, `${base}/raw`), { keep: `raw ${key}` }),
      button('Save as .eml', () => save(`${base}/raw`, 'message.eml'), { keep: `eml ${key}` }),
    ),
  )
}

/** Shows the text that the author of a message wrote. The quoted text of earlier messages is collapsed. */
function textOf({ messageId, text, extractedText }: Message): HTMLElement[] {
  const own = extractedText?.trim() ?? text
  const whole = text.trim()
  const quoted =
    extractedText === undefined || own === whole
      ? ''
      : whole.startsWith(own)
        ? whole.slice(own.length).trim()
        : whole
  return [
    h('pre', { class: 'text', dir: 'auto' }, own === '' ? '(no text)' : own),
    ...(quoted === ''
      ? []
      : [
          h(
            'details',
            { class: 'quoted', 'data-keep': `quoted ${messageId}` },
            h('summary', {}, 'Quoted text and signature'),
            h('pre', { class: 'text', dir: 'auto' }, quoted),
          ),
        ]),
  ]
}

const frame = (path: string): HTMLElement =>
  // The frame allows no scripts and has an opaque origin, so that the mail cannot access the console.
  h('iframe', {
    class: 'mail',
    sandbox: '',
    src: `/console/api${path}`,
    title: 'HTML body of the message',
    referrerpolicy: 'no-referrer',
    loading: 'lazy',
  })

/** Shows one of the three views of a message: the text, the HTML or the original bytes. */
function view(body: HTMLElement, name: 'text' | 'html' | 'raw', shown: HTMLElement[]): void {
  body.dataset.view = name
  body.replaceChildren(...shown)
}

async function showRaw(body: HTMLElement, path: string): Promise<void> {
  body.dataset.view = 'raw'
  const raw = await (await askBytes(path)).text()
  // The user may have chosen another view while the original of the message was loading. Therefore the code checks the
  // view before it shows the original.
  if (body.dataset.view !== 'raw') return
  body.replaceChildren(
    h(
      'pre',
      { class: 'raw', tabindex: 0, role: 'region', 'aria-label': 'Original message' },
      raw.slice(0, RAW_SHOWN),
    ),
    ...(raw.length > RAW_SHOWN ? [h('p', { class: 'note' }, 'Only the beginning is shown.')] : []),
    copyButton(raw),
  )
}
