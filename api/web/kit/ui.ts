/** Provides the building blocks for all screens of the console. */
import { type Child, h, svg } from './dom.ts'
import { may } from './role.ts'
import type { Role } from './types.ts'

/** Maps each state to the colour of the badge for this state. A badge always shows a text in addition to its colour. */
const TONES: Record<string, 'good' | 'wait' | 'bad' | 'info'> = {
  settled: 'good',
  paid: 'good',
  asked: 'info',
  asking: 'wait',
  paying: 'wait',
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
  approved: 'good',
  queued: 'wait',
  scheduled: 'wait',
  held: 'wait',
  waiting: 'wait',
  deferred: 'wait',
  delayed: 'wait',
  ready: 'wait',
  settling: 'wait',
  unchecked: 'wait',
  unknown: 'wait',
  warning: 'wait',
  softfail: 'wait',
  temperror: 'wait',
  broken: 'bad',
  rejected: 'bad',
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

/** Makes a badge with the name of a state. */
export const badge = (state: string, text = state): HTMLElement =>
  h('span', { class: `badge ${Object.hasOwn(TONES, state) ? TONES[state] : ''}` }, text)

/**
 * Shows the delivery state of a sent message. The state "captured" means that the service only stored the mail and did
 * not really send it.
 */
export const deliveryBadge = (status: string, captured: boolean): HTMLElement =>
  badge(captured && status === 'sent' ? 'captured' : status)

/** Makes the header of a console screen. The heading of the screen gets the focus when the screen opens. */
export const heading = (title: string, lead: Child = null, ...actions: Child[]): HTMLElement =>
  h(
    'header',
    { class: 'heading' },
    h('div', {}, h('h1', { tabindex: -1 }, title), lead === null ? null : h('p', {}, lead)),
    actions.length === 0 ? null : h('div', { class: 'actions' }, actions),
  )

/** Makes one section of a screen. The section has a heading, an introduction and buttons. */
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
  kind?: 'plain' | 'primary' | 'danger' | 'small'
  keep?: string
  title?: string
  /**
   * Holds the name that screen readers announce for the button. It is needed if several buttons have the same visible
   * text.
   */
  label?: string
  /** Names the lowest role that may use the button. People with a lower role do not see the button. */
  needs?: Role
}

export const button = (
  label: Child,
  act: () => void | Promise<void>,
  { kind = 'plain', keep, title, label: name, needs = 'viewer' }: ButtonOptions = {},
): HTMLButtonElement => {
  const made = h(
    'button',
    {
      type: 'button',
      class: `button ${kind}`,
      'data-keep': keep,
      title,
      'aria-label': name,
      hidden: !may(needs),
      on: { click: () => void guarded(made, act) },
    },
    label,
  )
  return made
}

/** Runs the action of a button, and disables the button until the action ends. */
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
  /**
   * Tells how the column of a table looks. A column of the kind `main` is the title of a card on narrow screens. The
   * kind `num` aligns the digits. The kind `choose` holds a checkbox.
   */
  kind?: 'main' | 'num' | 'end' | 'choose'
}

/**
 * Makes the header of a table. The code sets the ARIA table roles explicitly, because a CSS `display` other than the
 * default would remove them.
 */
export const tableHead = <Row>(columns: readonly Column<Row>[]): HTMLElement =>
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
          kind === 'end' || kind === 'choose' ? h('span', { class: 'hidden' }, name) : name,
        ),
      ),
    ),
  )

/**
 * Makes one row of a table. The parameter `index` is the position of the row in the whole list. It is not needed if the
 * table shows all rows at once.
 */
export const tableRow = <Row>(
  columns: readonly Column<Row>[],
  row: Row,
  index?: number,
): HTMLElement =>
  h(
    'tr',
    { role: 'row', 'data-row': true, tabindex: -1, 'aria-rowindex': index },
    columns.map(({ name, cell, kind }) =>
      h('td', { role: 'cell', class: kind, 'data-label': name }, h('div', {}, cell(row))),
    ),
  )

/** Makes a table, which becomes a list of cards on narrow screens. */
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
      tableHead(columns),
      h(
        'tbody',
        { role: 'rowgroup' },
        rows.map((row) => tableRow(columns, row)),
      ),
    ),
  )

/**
 * Makes the placeholder that an empty list shows. It tells which items will appear in the list, and how they get there.
 */
export const empty = (title: string, text: Child, ...actions: Child[]): HTMLElement =>
  h(
    'div',
    { class: 'panel empty' },
    h('p', { class: 'title' }, title),
    h('p', {}, text),
    actions.length === 0 ? null : h('div', { class: 'actions' }, actions),
  )

/** Makes an HTML description list. */
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

/** Makes a notice about a condition or an error, which stays on the page. */
export const notice = (tone: 'info' | 'wait' | 'bad' | 'good', ...children: Child[]): HTMLElement =>
  h('div', { class: `notice ${tone}`, role: tone === 'bad' ? 'alert' : 'note' }, children)

/** Holds the live region in which screen readers announce toasts. */
export const toasts = h('div', { class: 'toasts', role: 'status', 'aria-live': 'polite' })
const TOAST_MS = 6_000

/** Shows the result of an action as a toast, which screen readers announce. */
export function toast(text: string, tone: 'good' | 'bad' = 'good'): void {
  const shown = h('p', { class: `toast ${tone}` }, text)
  toasts.append(shown)
  setTimeout(() => shown.remove(), TOAST_MS)
}

/** Makes a button that copies a text. If the browser forbids copying, a toast tells the user. */
export const copyButton = (
  text: string,
  label: Child = 'Copy',
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

/** Draws the icon of the copy button as SVG, because the fonts of many machines lack a copy symbol. */
const copyIcon = (): SVGSVGElement =>
  svg(
    'svg',
    { class: 'copy-icon', viewBox: '0 0 16 16', 'aria-hidden': true },
    svg('rect', { x: 5.5, y: 5.5, width: 8, height: 8, rx: 1.5 }),
    svg('path', { d: 'M10.5 3v-.5a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1H4' }),
  )

/** Makes a text that the user copies with one click, such as an address, an id or a hash. */
export const copyable = (text: string, shown: Child = h('code', {}, text)): HTMLElement =>
  h(
    'span',
    { class: 'copyable-text' },
    shown,
    copyButton(text, copyIcon(), { label: `Copy ${text}`, keep: `copy ${text}`, kind: 'small' }),
  )

/** Makes a row of links. On narrow screens, it scrolls so that the current link is visible. */
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
