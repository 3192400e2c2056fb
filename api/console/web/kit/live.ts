import { AskError, ask } from './ask.ts'
import { type Child, h, replaceContent } from './dom.ts'
import type { Page } from './types.ts'
import { button, notice } from './ui.ts'

type Watched<Value> = {
  /** Asks for what is shown; `watching` after the first time. */
  load: (watching: boolean) => Promise<Value>
  draw: (value: Value) => Child
  /** How often to look again; never when left out. */
  everyMs?: number
  /** Aborted when the screen is left. */
  signal: AbortSignal
}

/** A part of the page that keeps itself up to date while somebody can see it. */
export function live<Value>({ load, draw, everyMs, signal }: Watched<Value>): {
  element: HTMLElement
  /** Looks again, now. */
  refresh: () => Promise<void>
} {
  const element = h(
    'div',
    { class: 'live', 'aria-busy': 'true' },
    h('p', { class: 'loading' }, 'Loading…'),
  )
  let shown: string | null = null
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = async (watching: boolean) => {
    try {
      const value = await load(watching)
      const seen = JSON.stringify(value)
      if (signal.aborted || seen === shown) return
      shown = seen
      replaceContent(element, draw(value))
    } catch (error) {
      if (signal.aborted) return
      // What cannot be reached for a moment leaves what is shown; what is refused does not.
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

/** Pages of a list shown at most; what is older is found over the API. */
const PAGES_MAX = 20

/** A list on the page; `refresh` looks again, now. */
export type LiveList = { element: HTMLElement; refresh: () => Promise<void> }

/** The first pages of a list, and the token of the page behind them. */
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

/** A paged list that keeps itself up to date; pages are added on demand. */
export function liveList<Name extends string, Item>(options: {
  name: Name
  path: string
  /** Beside the page; `limit` is 50 when left out. */
  query?: Record<string, string>
  draw: (items: Item[]) => Child
  /** Shown when there is nothing. */
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
    // All pages anew: what comes in at the top moves what was at the end of one page to the next.
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
