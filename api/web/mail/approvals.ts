/**
 * Shows the list of held mails, which wait for their owner's approval, and each held mail with the buttons for the
 * decision.
 */
import { ask, at } from '../kit/ask.ts'
import { choice, field, openDialog, textArea } from '../kit/dialog.ts'
import { type Child, h, replaceContent } from '../kit/dom.ts'
import { bytes, moment } from '../kit/format.ts'
import type { Filter } from '../kit/list/filters.ts'
import { filteredList } from '../kit/list/list.ts'
import { live } from '../kit/live.ts'
import { ofProject, projectLink } from '../kit/screen.ts'
import type { HeldItem, HeldRequest, Project } from '../kit/types.ts'
import { badge, button, empty, facts, notice, toast } from '../kit/ui.ts'
import { review } from './review.ts'

const REFRESH_MS = 3_000

const heldPath = ({ projectId }: Project) => at`/v0/platform/projects/${projectId}/held`
const subjectOf = (subject: string) => (subject.trim() === '' ? '(no subject)' : subject)

const STATES: Filter = {
  kind: 'choice',
  name: 'state',
  label: 'State',
  options: [
    ['', 'waiting'],
    ['approved', 'approved'],
    ['rejected', 'rejected'],
    ['withdrawn', 'withdrawn'],
    ['expired', 'expired'],
  ],
}

/** Shows the list of a project's mails that wait for the owner's decision or about which the owner has decided. */
export const approvals = ofProject('approvals', (project, { signal, query }) => [
  project.sendPolicy === 'free'
    ? notice('info', 'Mail of this project leaves without approval. Its settings change that.')
    : null,
  filteredList<'held', HeldItem>({
    label: 'Mail that waits for approval',
    here: projectLink(project.projectId, 'approvals'),
    query,
    filters: [STATES],
    name: 'held',
    signal,
    everyMs: REFRESH_MS,
    path: heldPath(project),
    none: () => empty('Nothing waits', 'Mail that needs your approval appears here.'),
    columns: [
      {
        name: 'Subject',
        kind: 'main',
        cell: ({ approvalId, message }) => [
          h(
            'a',
            {
              href: projectLink(project.projectId, 'approvals', approvalId),
              'data-keep': approvalId,
              dir: 'auto',
            },
            subjectOf(message?.subject ?? ''),
          ),
          h('p', { class: 'note snippet', dir: 'auto' }, message?.text.slice(0, 200) ?? ''),
        ],
      },
      { name: 'To', cell: ({ message }) => recipients(message) },
      { name: 'Waits since', cell: ({ requestedAt }) => moment(requestedAt) },
      { name: 'Expires', cell: ({ expiresAt }) => moment(expiresAt) },
    ],
  }).element,
])

const recipients = (message: HeldItem['message']): string =>
  message === null ? '–' : [...message.to, ...message.cc, ...message.bcc].join(', ')

/** Shows one held mail, with the buttons for the owner's decision. */
export const approval = ofProject('approvals', (project, { params, signal }) => {
  const approvalId = params[1]!
  const path = `${heldPath(project)}/${encodeURIComponent(approvalId)}`
  // The map keeps the pages of the held mail (which waits for approval) that the owner has already read, even if the
  // console draws the approval request again.
  const reading = new Map<string, { element: HTMLElement; seal: string | null }>()
  const read = (held: HeldRequest, message: Letter) => {
    const known = reading.get(held.sha256 ?? '')
    if (known !== undefined) return known
    const one: { element: HTMLElement; seal: string | null } = { element: h('div', {}), seal: null }
    one.element = review(project, { held, message, signal }, (seal) => {
      one.seal = seal
      decide(held, one)
    })
    reading.set(held.sha256 ?? '', one)
    return one
  }
  const actions = h('div', {})
  const decide = (held: HeldRequest, { seal }: { seal: string | null }) =>
    replaceContent(actions, decision(project, held, path, seal))
  return live({
    signal,
    everyMs: REFRESH_MS,
    load: (watching) => ask<HeldRequest>(path, { watching, signal }),
    draw: (held) => {
      const waits = held.state === 'waiting' && held.message !== null
      const shown = waits ? read(held, held.message!) : null
      decide(held, shown ?? { seal: null })
      return [
        h(
          'header',
          { class: 'thread' },
          h(
            'a',
            {
              class: 'back',
              href: projectLink(project.projectId, 'approvals'),
              'data-keep': 'back',
            },
            '← Approvals',
          ),
          h('h2', { dir: 'auto' }, subjectOf(held.message?.subject ?? '')),
        ),
        held.message === null
          ? notice('info', 'The agent deleted this mail.')
          : letter(held, held.message, shown?.element ?? text(held.message.text)),
        actions,
      ]
    },
  }).element
})

type Letter = NonNullable<HeldRequest['message']>

function letter(held: HeldRequest, message: Letter, shown: HTMLElement): HTMLElement {
  const line = (name: string, list: readonly string[]): [string, Child] | null =>
    list.length === 0 ? null : [name, list.join(', ')]
  return h(
    'article',
    { class: 'panel message', 'aria-label': 'The mail' },
    facts([
      line('From', message.from),
      line('To', message.to),
      line('Cc', message.cc),
      line('Bcc', message.bcc),
      line('Left out', message.refused),
      line(
        'Attachments',
        message.attachments.map(({ filename, size }) => `${filename} (${bytes(size)})`),
      ),
      message.sendAt === undefined ? null : ['Leaves', moment(message.sendAt)],
      ['State', badge(held.state)],
      ['Expires', moment(held.expiresAt)],
      ['SHA-256', h('code', { class: 'long' }, held.sha256 ?? '')],
    ]),
    shown,
  )
}

const text = (words: string) => h('pre', { class: 'text', dir: 'auto' }, words || '(no text)')

/**
 * Makes the buttons for the owner's decision about a held mail.
 * @param seal is a signed proof that the service has shown all pages of the held mail. Null means that the owner has
 * not read all pages, or that the console cannot show the mail.
 */
function decision(project: Project, held: HeldRequest, path: string, seal: string | null): Child {
  const { sha256, message } = held
  if (held.state !== 'waiting' || sha256 === null || message === null) {
    const by = held.decidedBy === null ? '' : ` by ${held.decidedBy}`
    const why = held.reason === null ? '' : `: ${held.reason}`
    return notice('info', `This mail is ${held.state}${by}${why}`)
  }
  const seen = { path, sha256 }
  return h(
    'div',
    { class: 'actions', role: 'group', 'aria-label': 'Decision' },
    seal === null
      ? null
      : button('Approve', () => approve(project, { ...seen, seal }), {
          needs: 'owner',
          kind: 'primary',
          keep: 'approve',
        }),
    button('Edit', () => edit(message, seen), { needs: 'owner', keep: 'edit' }),
    button('Reject', () => reject(project, seen), {
      needs: 'owner',
      kind: 'danger',
      keep: 'reject',
    }),
  )
}

/**
 * Identifies the mail that the owner has read, by its path and hash. If the mail changes later, the service refuses the
 * owner's decision.
 */
type Seen = { path: string; sha256: string }

function finish(project: Project, done: string): void {
  toast(done)
  location.hash = projectLink(project.projectId, 'approvals')
}

const approve = (project: Project, { path, sha256, seal }: Seen & { seal: string }): void =>
  openDialog({
    title: 'Approve and send',
    action: 'Approve',
    body: [
      h('p', {}, 'Exactly this mail is sent. It cannot be recalled.'),
      choice('Later mail without approval', 'trust', [
        ['recipients', 'to these recipients'],
        ['domains', 'to everybody in their domains'],
        ['none', 'to nobody new'],
      ]),
    ],
    act: async (form) => {
      const body = { sha256, seen: seal, trust: form.get('trust') }
      await ask(`${path}/approve`, { method: 'POST', body })
      return () => finish(project, 'Approved; Outgoing shows its delivery')
    },
  })

const reject = (project: Project, { path }: Seen): void =>
  openDialog({
    title: 'Reject',
    action: 'Reject',
    danger: true,
    body: textArea('Reason, for the agent', 'reason', { maxlength: 1_000, rows: 4 }),
    act: async (form) => {
      await ask(`${path}/reject`, { method: 'POST', body: { reason: form.get('reason') } })
      return () => finish(project, 'Rejected; the agent is told')
    },
  })

const edit = (message: Letter, { path, sha256 }: Seen): void =>
  openDialog({
    title: 'Edit',
    action: 'Save',
    body: [
      message.html === null
        ? null
        : h('p', { class: 'note' }, 'A changed text drops the HTML part of the mail.'),
      field('Subject', 'subject', { maxlength: 998, value: message.subject }),
      textArea('Text', 'text', {}, message.text),
    ],
    act: async (form) => {
      const given = { subject: form.get('subject'), text: form.get('text') }
      // To find out whether the person has changed the text, the code changes each line end of the mail to a line feed,
      // as the HTML text area does.
      const shown = message.text.replace(/\r\n?/g, '\n')
      const body = {
        sha256,
        ...(given.subject === message.subject ? {} : { subject: given.subject }),
        ...(given.text === shown ? {} : { text: given.text }),
      }
      await ask(path, { method: 'PATCH', body })
      return () => {
        toast('Changed; it still waits')
        dispatchEvent(new HashChangeEvent('hashchange'))
      }
    },
  })
