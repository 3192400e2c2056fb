import { openNote } from './dialog.ts'
import { h } from './dom.ts'

const KEYS: readonly (readonly [string, string])[] = [
  ['/', 'goes to the search'],
  ['j', 'goes to the next row'],
  ['k', 'goes to the row before'],
  ['x', 'chooses the row'],
  ['Enter', 'opens the row'],
  ['?', 'shows these keys'],
  ['Escape', 'leaves a field or a dialog'],
]

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.matches('input:not([type="checkbox"]), textarea, select, [contenteditable]')

/**
 * Handles the keyboard shortcuts of the whole console. The shortcuts do not work while a person types, or while a
 * dialog is open.
 */
export function listenForKeys(main: HTMLElement): void {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
    if (document.querySelector('dialog[open]') !== null) return
    if (isTyping(event.target)) {
      if (event.key === 'Escape') (event.target as HTMLElement).blur()
      return
    }
    const act = {
      '/': () => main.querySelector<HTMLElement>('input[type="search"]')?.focus(),
      j: () => step(main, 1),
      k: () => step(main, -1),
      x: () => rowOf(document.activeElement)?.querySelector<HTMLElement>('[data-choose]')?.click(),
      '?': showKeys,
    }[event.key]
    if (act === undefined) return
    event.preventDefault()
    act()
  })
}

const rowOf = (element: Element | null) => element?.closest<HTMLElement>('[data-row]') ?? null

/**
 * Moves the focus to the next or previous row of a list. The link in the row gets the focus, or the row itself if it
 * has no link. If no row has the focus, it moves to the first visible row.
 */
function step(main: HTMLElement, by: 1 | -1): void {
  const rows = [...main.querySelectorAll<HTMLElement>('[data-row]')]
  const at = rows.indexOf(rowOf(document.activeElement)!)
  const inSight = rows.findIndex((row) => row.getBoundingClientRect().bottom > 0)
  const row = rows[at === -1 ? inSight : at + by]
  if (row === undefined) {
    // The next row is not loaded yet, so the code scrolls the list, which loads further rows.
    rows[at]?.scrollIntoView({ block: by === 1 ? 'start' : 'end' })
    return
  }
  const target = row.querySelector<HTMLElement>('a[href]') ?? row
  target.focus({ preventScroll: true })
  row.scrollIntoView({ block: 'nearest' })
}

const showKeys = (): void =>
  openNote(
    'Keys',
    h(
      'dl',
      { class: 'facts keys' },
      KEYS.map(([key, does]) => h('div', {}, h('dt', {}, h('kbd', {}, key)), h('dd', {}, does))),
    ),
  )
