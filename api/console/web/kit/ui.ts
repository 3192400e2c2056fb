/** The parts that every screen is made of. */
import { type Child, h } from './dom.ts'

/** What a state is shown as; the word always stands beside the colour. */
const TONES: Record<string, 'good' | 'wait' | 'bad' | 'info'> = {
  settled: 'good',
  delivered: 'good',
  sent: 'good',
  verified: 'good',
  ok: 'good',
  enabled: 'good',
  live: 'good',
  pass: 'good',
  captured: 'good',
  running: 'good',
  pending: 'wait',
  queued: 'wait',
  deferred: 'wait',
  delayed: 'wait',
  ready: 'wait',
  settling: 'wait',
  unchecked: 'wait',
  unknown: 'wait',
  softfail: 'wait',
  temperror: 'wait',
  failed: 'bad',
  bounced: 'bad',
  aborted: 'bad',
  exhausted: 'bad',
  unreachable: 'bad',
  expired: 'bad',
  fail: 'bad',
  permerror: 'bad',
  unauthenticated: 'bad',
  missing: 'bad',
  mismatch: 'bad',
  unread: 'info',
  'auto-reply': 'info',
  list: 'info',
}

/** A state in a word, or in more of them. */
export const badge = (state: string, text = state): HTMLElement =>
  h('span', { class: `badge ${Object.hasOwn(TONES, state) ? TONES[state] : ''}` }, text)

/** What became of a sent message. Where mail is captured, nothing was sent anywhere. */
export const deliveryBadge = (status: string, captured: boolean): HTMLElement =>
  badge(captured && status === 'sent' ? 'captured' : status)

/** The head of a screen. The heading takes the focus when the screen is entered. */
export const heading = (title: string, lead: Child = null, ...actions: Child[]): HTMLElement =>
  h(
    'header',
    { class: 'heading' },
    h('div', {}, h('h1', { tabindex: -1 }, title), lead === null ? null : h('p', {}, lead)),
    actions.length === 0 ? null : h('div', { class: 'actions' }, actions),
  )

/** A part of a screen with a name, a word of what it is for, and what can be done in it. */
export const section = (
  id: string,
  title: string,
  { lead, actions }: { lead: Child; actions: Child },
  ...content: Child[]
): HTMLElement =>
  h(
    'section',
    { 'aria-labelledby': id },
    h(
      'header',
      { class: 'heading' },
      h('div', {}, h('h2', { id }, title), h('p', {}, lead)),
      actions === null ? null : h('div', { class: 'actions' }, actions),
    ),
    content,
  )

type ButtonOptions = {
  kind?: 'plain' | 'primary' | 'danger'
  keep?: string
  title?: string
  /** What it is called aloud, where several on the page show the same. */
  label?: string
}

export const button = (
  label: Child,
  act: () => void | Promise<void>,
  { kind = 'plain', keep, title, label: name }: ButtonOptions = {},
): HTMLButtonElement => {
  const made = h(
    'button',
    {
      type: 'button',
      class: `button ${kind}`,
      'data-keep': keep,
      title,
      'aria-label': name,
      on: { click: () => void guarded(made, act) },
    },
    label,
  )
  return made
}

/** One press, one act: a button is off until what it began has ended. */
async function guarded(made: HTMLButtonElement, act: () => void | Promise<void>): Promise<void> {
  if (made.ariaDisabled === 'true') return
  made.ariaDisabled = 'true'
  try {
    await act()
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), 'bad')
  } finally {
    made.ariaDisabled = null
  }
}

export type Column<Row> = {
  name: string
  cell: (row: Row) => Child
  /** `main` leads a card where the table does not fit; `num` is aligned by its digits. */
  kind?: 'main' | 'num' | 'end'
}

/**
 * A table, and where it does not fit a list of cards. The roles are said aloud: a table that is laid out otherwise would
 * lose them.
 */
export const table = <Row>(
  label: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): HTMLElement =>
  h(
    'div',
    { class: 'panel table' },
    h(
      'table',
      { role: 'table', 'aria-label': label },
      h(
        'thead',
        { role: 'rowgroup' },
        h(
          'tr',
          { role: 'row' },
          columns.map(({ name, kind }) =>
            h(
              'th',
              { role: 'columnheader', scope: 'col', class: kind },
              kind === 'end' ? h('span', { class: 'hidden' }, name) : name,
            ),
          ),
        ),
      ),
      h(
        'tbody',
        { role: 'rowgroup' },
        rows.map((row) =>
          h(
            'tr',
            { role: 'row' },
            columns.map(({ name, cell, kind }) =>
              h('td', { role: 'cell', class: kind, 'data-label': name }, h('div', {}, cell(row))),
            ),
          ),
        ),
      ),
    ),
  )

/** Instead of a list without entries: what would be here, and how it comes. */
export const empty = (title: string, text: Child, ...actions: Child[]): HTMLElement =>
  h(
    'div',
    { class: 'panel empty' },
    h('p', { class: 'title' }, title),
    h('p', {}, text),
    actions.length === 0 ? null : h('div', { class: 'actions' }, actions),
  )

/** Terms and what they are. */
export const facts = (entries: readonly (readonly [string, Child] | null)[]): HTMLElement =>
  h(
    'dl',
    { class: 'facts' },
    entries.map((entry) =>
      entry === null ? null : h('div', {}, h('dt', {}, entry[0]), h('dd', {}, entry[1])),
    ),
  )

export const panel = (title: string | null, ...children: Child[]): HTMLElement =>
  h('section', { class: 'panel' }, title === null ? null : h('h2', {}, title), children)

/** A remark that stays: a state of things, or what went wrong. */
export const notice = (tone: 'info' | 'wait' | 'bad' | 'good', ...children: Child[]): HTMLElement =>
  h('div', { class: `notice ${tone}`, role: tone === 'bad' ? 'alert' : 'note' }, children)

/** The region that screen readers hear when something has been done. */
export const toasts = h('div', { class: 'toasts', role: 'status', 'aria-live': 'polite' })
const TOAST_MS = 6_000

/** Says that something has been done, or not. */
export function toast(text: string, tone: 'good' | 'bad' = 'good'): void {
  const shown = h('p', { class: `toast ${tone}` }, text)
  toasts.append(shown)
  setTimeout(() => shown.remove(), TOAST_MS)
}

/** Copies a text; where the browser does not let a page do so, it says so. */
export const copyButton = (
  text: string,
  label = 'Copy',
  options: ButtonOptions = {},
): HTMLButtonElement =>
  button(
    label,
    async () => {
      if (navigator.clipboard === undefined) throw new Error('This browser copies only over https')
      await navigator.clipboard.writeText(text)
      toast('Copied')
    },
    options,
  )

/** A row of links of which one is current; where they do not all fit, that one is in view. */
export function tabs(
  label: string,
  links: readonly { href: string; name: Child; current: boolean }[],
): HTMLElement {
  const made = h(
    'nav',
    { class: 'tabs', 'aria-label': label },
    links.map(({ href, name, current }) =>
      h('a', { href, 'aria-current': current ? 'page' : undefined, 'data-keep': href }, name),
    ),
  )
  requestAnimationFrame(() => {
    const current = made.querySelector<HTMLElement>('[aria-current]')
    if (current === null) return
    made.scrollLeft = current.offsetLeft - (made.clientWidth - current.offsetWidth) / 2
  })
  return made
}
