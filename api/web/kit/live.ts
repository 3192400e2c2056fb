import { AskError, ask } from './ask.ts'
import { type Child, h, replaceContent } from './dom.ts'
import type { Page } from './types.ts'
import { button, notice } from './ui.ts'

type Watched<Value> = {
  /**
   * Loads the value that the page shows. The parameter `watching` is `true` if a timer started the load, and `false` if
   * the user did.
   */
  load: (watching: boolean) => Promise<Value>
  draw: (value: Value) => Child
  /**
   * Sets the milliseconds between two loads of the shown value. Without it, the console page loads the value only once.
   */
  everyMs?: number
  /** Holds a signal that aborts when the user leaves the screen. */
  signal: AbortSignal
}

/** Makes a part of the page that loads and shows its value repeatedly while the page is visible. */
export function live<Value>({ load, draw, everyMs, signal }: Watched<Value>): {
  element: HTMLElement
  /** Loads the shown value again, without waiting for the next poll. */
  refresh: () => Promise<void>
} {
  const element = h(
    'div',
    { class: 'live', 'aria-busy': 'true' },
    h('p', { class: 'loading' }, 'Loading…'),
  )
  let shown: string | null = null
  let timer: ReturnType<typeof setTimeout> | undefined
  let looks = 0
  const look = async (watching: boolean) => {
    const turn = ++looks
    // The console page ignores the response to an earlier load if it arrives after the response to a later load,
    // because it is then out of date.
    const isOver = () => signal.aborted || turn !== looks
    try {
      const value = await load(watching)
      const seen = JSON.stringify(value)
      if (isOver() || seen === shown) return
      replaceContent(element, draw(value))
      shown = seen
    } catch (error) {
      if (isOver()) return
      // After a network error, the old content stays on the console page. An error response of the service replaces the
      // old content.
      if (shown !== null && !(error instanceof AskError)) return
      shown = null
      replaceContent(element, notice('bad', error instanceof Error ? error.message : String(error)))
    } finally {
      element.removeAttribute('aria-busy')
    }
  }
  const again = () => {
    if (everyMs === undefined || signal.aborted) return
    timer = setTimeout(async () => {
      if (document.visibilityState === 'visible') await look(true)
      again()
    }, everyMs)
  }
  void look(false).then(again)
  signal.addEventListener('abort', () => clearTimeout(timer))
  return { element, refresh: () => look(false) }
}

/**
 * Sets the maximum number of pages of a list that the console shows. Older entries are available only through the API.
 */
const PAGES_MAX = 20

/** Describes a list that the console page shows. The function `refresh` loads the list again at once. */
export type LiveList = { element: HTMLElement; refresh: () => Promise<void> }

/**
 * Returns the items of all pages of a list, but at most `most` items. The field `more` tells whether the list has
 * further items.
 */
export async function readAll<Name extends string, Item>(
  list: { name: Name; path: string; query?: Record<string, string> },
  { most, progress }: { most: number; progress?: (found: number) => void },
): Promise<{ items: Item[]; more: boolean }> {
  const items: Item[] = []
  let token: string | undefined
  do {
    const query = new URLSearchParams({ ...list.query, limit: '100' })
    if (token !== undefined) query.set('pageToken', token)
    const found: Page<Name, Item> = await ask(`${list.path}?${query}`)
    items.push(...found[list.name])
    progress?.(items.length)
    token = found.nextPageToken
  } while (token !== undefined && items.length < most)
  return { items: items.slice(0, most), more: token !== undefined || items.length > most }
}

/** Returns the items of the first pages of a list, and the token of the page after these pages. */
export async function readPages<Name extends string, Item>(
  list: { name: Name; path: string; query?: Record<string, string>; signal?: AbortSignal },
  { pages, watching = false }: { pages: number; watching?: boolean },
): Promise<{ items: Item[]; next: string | null }> {
  const items: Item[] = []
  let next: string | null = null
  for (let page = 0; page < pages; page++) {
    const query = new URLSearchParams({ limit: '50', ...list.query })
    if (next !== null) query.set('pageToken', next)
    const asked = list.signal === undefined ? { watching } : { watching, signal: list.signal }
    const found = await ask<Page<Name, Item>>(`${list.path}?${query}`, asked)
    items.push(...found[list.name])
    next = found.nextPageToken ?? null
    if (next === null) break
  }
  return { items, next }
}

/** Makes a list that consists of pages and polls the service. The user adds further pages to the list with a button. */
export function liveList<Name extends string, Item>(options: {
  name: Name
  path: string
  /** Adds query parameters to the list's requests. By default the query parameter `limit` is 50. */
  query?: Record<string, string>
  draw: (items: Item[]) => Child
  /** Makes the content that an empty list shows. */
  none: () => Child
  everyMs?: number
  signal: AbortSignal
}): LiveList {
  const { signal, everyMs } = options
  let pages = 1
  const more = async () => {
    pages++
    await shown.refresh()
  }
  const shown: LiveList = live({
    signal,
    ...(everyMs === undefined ? {} : { everyMs }),
    // At each poll, the console loads all shown pages again, because new entries at the top of the list shift the
    // boundaries of the pages.
    load: async (watching) => {
      const { items, next } = await readPages<Name, Item>(options, { pages, watching })
      return { items, hasMore: next !== null && pages < PAGES_MAX }
    },
    draw: ({ items, hasMore }) => {
      if (items.length === 0) return options.none()
      return [
        options.draw(items),
        hasMore ? h('div', { class: 'more' }, button('Show more', more, { keep: 'more' })) : null,
      ]
    },
  })
  return shown
}
