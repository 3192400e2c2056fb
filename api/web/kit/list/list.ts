import { ask } from '../ask.ts'
import { type Child, h, replaceContent } from '../dom.ts'
import { may } from '../role.ts'
import type { Page } from '../types.ts'
import { button, type Column, empty, tableHead, tableRow } from '../ui.ts'
import { type Choosing, chooser } from './choose.ts'
import { type Filter, filterBar, type Given, givenOf, toQuery } from './filters.ts'
import { type ShownList, windowed } from './pages.ts'
import { pushPlace } from './place.ts'

const PAGE_SIZE = 50

/** Describes the look of a list: a table with one row for each item, or one card for each item. */
type Look<Item> =
  | { columns: readonly Column<Item>[]; card?: never }
  | { card: (item: Item) => HTMLElement; columns?: never }

type Listed<Name extends string, Item> = {
  /** Holds the name that screen readers announce for the list. */
  label: string
  /** Names the response field that holds the items of the list. */
  name: Name
  path: string
  /** Holds the query parameters that every request of the list contains. */
  fixed?: Record<string, string>
  /** Makes the content that an empty list shows when no filter is set. */
  none: () => Child
  /** The list calls this function with the fields of a response, except the field with the list's items. */
  also?: (answer: Page<Name, Item>) => void
  everyMs?: number
  signal: AbortSignal
  choosing?: Choosing<Item>
} & Look<Item>

/** Makes a list that loads more items while the user scrolls. */
export function list<Name extends string, Item>(options: Listed<Name, Item>): ShownList {
  const { label, name, path, signal, columns, card, choosing, fixed = {} } = options
  const query = { limit: String(PAGE_SIZE), ...fixed }
  const mayChoose = choosing !== undefined && may(choosing.needs)
  const chosen = mayChoose ? chooser(choosing, { path, name, query }) : null
  const shown =
    columns === undefined
      ? cards(label, card)
      : rows(label, chosen === null ? columns : [chosen.column, ...columns])
  const made = windowed<Item>({
    ...shown,
    name: `${label} ${new URLSearchParams(fixed)}`,
    load: async (token, watching) => {
      const page = new URLSearchParams(token === null ? query : { ...query, pageToken: token })
      const found = await ask<Page<Name, Item>>(`${path}?${page}`, { watching, signal })
      options.also?.(found)
      return { items: found[name], next: found.nextPageToken ?? null }
    },
    none: options.none,
    signal,
    ...(options.everyMs === undefined ? {} : { everyMs: options.everyMs }),
  })
  if (chosen === null) return made
  chosen.whenDone(made.refresh)
  return { ...made, element: h('div', { class: 'live' }, chosen.bar, made.element) }
}

const cards = <Item>(label: string, card: (item: Item) => HTMLElement) => {
  const body = h('div', { class: 'live', role: 'list', 'aria-label': label })
  return {
    frame: body,
    body,
    page: () => h('div', { class: 'live', role: 'presentation' }),
    rows: (items: Item[]) =>
      items.map((item) =>
        h('div', { role: 'listitem', 'data-row': true, tabindex: -1 }, card(item)),
      ),
    gap: (height: number) => sized(h('div', { 'aria-hidden': true, 'data-gap': true }), height),
  }
}

const rows = <Item>(label: string, columns: readonly Column<Item>[]) => {
  // The number of rows in the table is unknown, because later pages may follow (`aria-rowcount` -1 in WAI-ARIA 1.2).
  const body = h(
    'table',
    { role: 'table', 'aria-label': label, 'aria-rowcount': -1 },
    tableHead(columns),
  )
  return {
    frame: h('div', { class: 'panel table' }, body),
    body,
    page: () => h('tbody', { role: 'rowgroup' }),
    // Screen readers count the header of the table as row 1, so the first item is row 2.
    rows: (items: Item[], first: number) =>
      items.map((item, n) => tableRow(columns, item, first + n + 2)),
    gap: (height: number) =>
      h(
        'tbody',
        { class: 'gap', 'aria-hidden': true },
        h('tr', {}, sized(h('td', { colspan: columns.length, 'data-gap': true }), height)),
      ),
  }
}

function sized<Made extends HTMLElement>(made: Made, height: number): Made {
  made.style.height = `${height}px`
  return made
}

/**
 * Makes a list with filters. The address of the page holds the filters, so that a link, a reload or the Back button
 * shows the same rows again.
 * @param options.here is the address of the console screen, without filters.
 */
export function filteredList<Name extends string, Item>(
  options: Listed<Name, Item> & {
    here: string
    query: URLSearchParams
    filters: readonly Filter[]
    /** Holds the buttons that stand beside the filters of the list. */
    tools?: Child
    /**
     * Makes a different list if certain filters are set, such as a list of search results. Null means that the console
     * shows the usual list.
     */
    instead?: (given: Given, signal: AbortSignal, clear: () => void) => ShownList | null
    /** The list calls this function with the values of all filters when the user changes the filters. */
    onGiven?: (given: Given) => void
  },
): ShownList {
  const { filters, signal, here } = options
  const place = h('div', { class: 'live' })
  const bar = h('div', { class: 'list-head' })
  let given = givenOf(filters, options.query)
  let leave = new AbortController()
  let shown: ShownList
  const show = (): void => {
    leave.abort()
    leave = new AbortController()
    const signals = AbortSignal.any([signal, leave.signal])
    replaceContent(bar, filterBar(filters, given, change), options.tools)
    const isFiltered = Object.keys(given).length > 0
    shown =
      options.instead?.(given, signals, clear) ??
      list({
        ...options,
        fixed: { ...options.fixed, ...toQuery(filters, given) },
        signal: signals,
        none: isFiltered ? () => nothingFound(clear) : options.none,
      })
    place.replaceChildren(shown.element)
    options.onGiven?.(given)
  }
  const change = (next: Given): void => {
    if (JSON.stringify(next) === JSON.stringify(given)) return
    given = next
    const query = new URLSearchParams(given)
    pushPlace(query.size === 0 ? here : `${here}?${query}`)
    show()
  }
  const clear = (): void => {
    change({})
    bar.querySelector<HTMLElement>('input, select')?.focus()
  }
  show()
  return {
    element: h('div', { class: 'live' }, bar, place),
    refresh: () => shown.refresh(),
  }
}

/** Makes the content that the list shows when no item matches the filters. */
export const nothingFound = (
  clear: () => void,
  { action = 'Show all', hint = 'Nothing matches these filters.' as Child } = {},
): HTMLElement => empty('Nothing found', hint, button(action, clear))
