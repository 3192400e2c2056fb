import { AskError } from '../ask.ts'
import { type Child, h, replaceContent } from '../dom.ts'
import { notice } from '../ui.ts'
import { type KnownPages, placeOf } from './place.ts'

type Loaded<Item> = { items: Item[]; next: string | null }

type Page<Item> = {
  token: string | null
  /**
   * Holds the items of one page of the list. Null means that the page is out of sight and the console has dropped its
   * items.
   */
  items: Item[] | null
  /** Holds the page token of the following page. Null means that the list has no following page. */
  next: string | null | undefined
  count: number
  height: number
  element: HTMLElement | null
  loading: Promise<void> | null
}

type Windowed<Item> = {
  /** Names the list uniquely on its screen, so that the console can restore its scroll position. */
  name: string
  load: (token: string | null, watching: boolean) => Promise<Loaded<Item>>
  /**
   * Holds the HTML element around all pages of the list, such as a table. The pages are in the part `body` of this HTML
   * element.
   */
  frame: HTMLElement
  body: HTMLElement
  /** Makes an empty HTML element for one page of the list, such as a tbody. */
  page: () => HTMLElement
  /**
   * Makes the rows of one page of the list. The parameter `first` is the index of the page's first row in the whole
   * list, counted from 0.
   */
  rows: (items: Item[], first: number) => Child
  /** Makes an empty table row of a given height, which replaces pages that are not visible. */
  gap: (height: number) => HTMLElement
  none: () => Child
  everyMs?: number
  signal: AbortSignal
}

/**
 * Sets how many milliseconds a list waits after a network error. Without this wait, the list would send hundreds of
 * requests a second while the service is unreachable.
 */
const AWAY_REST_MS = 2_000
/** Holds the HTTP status with which the service responds while its database is unreachable. */
const UNAVAILABLE = 503

export type ShownList = { element: HTMLElement; refresh: () => Promise<void> }

/**
 * Makes a list that loads more pages while the user scrolls. The console keeps only the pages near the visible part of
 * the list as HTML elements. An empty gap of the same height replaces each of the other pages, and the console drops
 * their items. Therefore a list of any length needs only the memory of a few pages.
 */
export function windowed<Item>(options: Windowed<Item>): ShownList {
  const { frame, body, signal, everyMs } = options
  const [above, below] = [options.gap(0), options.gap(0)]
  body.append(above, below)
  const keep = (): KnownPages =>
    pages.map(({ token, count, ...page }) => ({ token, count, height: heightOf(page) }))
  const known = placeOf(options.name, keep)
  const blank = (page: KnownPages[number]): Page<Item> => ({
    ...page,
    ...{ items: null, next: undefined, element: null, loading: null },
  })
  let pages = (known ?? [{ token: null, height: 0, count: 0 }]).map(blank)
  const element = h('div', { class: 'live' })
  if (known === null) {
    element.ariaBusy = 'true'
    element.append(h('p', { class: 'loading' }, 'Loading…'))
  } else {
    setHeight(below, sum(pages))
    element.append(frame)
  }

  const fetchPage = async (page: Page<Item>, watching: boolean): Promise<void> => {
    const { token } = page
    const { items, next } = await options.load(token, watching)
    if (signal.aborted || !pages.includes(page) || page.token !== token) return
    const changed = JSON.stringify(items) !== JSON.stringify(page.items)
    page.items = items
    page.count = items.length
    if (page.next !== next) chain(page, next)
    if (pages[0] === page && items.length === 0) {
      replaceContent(element, options.none())
    } else {
      if (frame.parentElement === null) replaceContent(element, frame)
      if (changed || page.element === null) mount(page)
    }
    element.removeAttribute('aria-busy')
  }
  /**
   * Sets the token of the list page after `page`. A changed token means that other items follow, so the console loads
   * the following pages again.
   */
  const chain = (page: Page<Item>, next: string | null): void => {
    page.next = next
    const after = pages[pages.indexOf(page) + 1]
    if (after === undefined || after.token === next) return
    if (next === null) {
      for (const gone of pages.splice(pages.indexOf(after))) gone.element?.remove()
      return
    }
    after.token = next
    after.loading = null
    if (after.element !== null) void load(after)
    else after.items = null
  }
  const mount = (page: Page<Item>): void => {
    const first = sum(pages.slice(0, pages.indexOf(page)), 'count')
    if (page.element === null) {
      page.element = options.page()
      const following = pages.slice(pages.indexOf(page) + 1).find((one) => one.element !== null)
      body.insertBefore(page.element, following?.element ?? below)
    }
    replaceContent(page.element, options.rows(page.items!, first))
    setGaps()
  }
  const load = (page: Page<Item>, watching = false): Promise<void> => {
    let isAway = false
    page.loading ??= fetchPage(page, watching)
      .catch((error) => {
        if (signal.aborted) return
        // After a network error, and while the database is unreachable, the old content of the list page stays visible.
        // Any other error response replaces it.
        const isBrief = !(error instanceof AskError) || error.status === UNAVAILABLE
        isAway = isBrief && frame.parentElement !== null
        if (isAway) return
        element.removeAttribute('aria-busy')
        replaceContent(
          element,
          notice('bad', error instanceof Error ? error.message : String(error)),
        )
      })
      .finally(() => {
        page.loading = null
        if (isAway) setTimeout(later, AWAY_REST_MS)
        else if (!signal.aborted) arrange()
      })
    return page.loading
  }
  const setGaps = (): void => {
    const first = pages.findIndex((page) => page.element !== null)
    const last = pages.findLastIndex((page) => page.element !== null)
    setHeight(above, sum(pages.slice(0, Math.max(first, 0))))
    setHeight(below, sum(pages.slice(last + 1)))
  }
  /** Loads the pages of the list that are near the visible part of the window, and drops pages that are far away. */
  const arrange = (): void => {
    if (!frame.isConnected) return
    for (const page of pages) page.height = heightOf(page)
    let top = body.getBoundingClientRect().top
    const near = new Map<Page<Item>, number>()
    for (const page of pages) {
      const bottom = top + page.height
      if (top < 2 * innerHeight && bottom >= -innerHeight) near.set(page, bottom)
      top = bottom
    }
    for (const page of pages) {
      // A list with only one page costs little memory. The console never replaces this page by a gap, so that the
      // browser's search finds every row.
      if (page.element === null || near.has(page) || pages.length === 1) continue
      page.element.remove()
      page.element = null
      page.items = null
    }
    setGaps()
    // The console adds a page only directly above or below the shown pages, because no gap may remain between two shown
    // pages.
    const shown = pages.flatMap((page, n) => (page.element === null ? [] : [n]))
    const wanted = pages.find(
      (page, n) =>
        near.has(page) &&
        page.items === null &&
        (shown.length === 0
          ? near.get(page)! >= 0
          : n === shown[0]! - 1 || n === shown.at(-1)! + 1),
    )
    if (wanted !== undefined) return void (wanted.loading ?? load(wanted))
    const end = pages.at(-1)!
    const bottom = near.get(end) ?? Number.POSITIVE_INFINITY
    if (end.items === null || typeof end.next !== 'string' || bottom > 2 * innerHeight) return
    const more = blank({ token: end.next, height: 0, count: 0 })
    pages = [...pages, more]
    void load(more)
  }

  let isQueued = false
  const later = (): void => {
    if (isQueued) return
    isQueued = true
    requestAnimationFrame(() => {
      isQueued = false
      if (!signal.aborted) arrange()
    })
  }
  addEventListener('scroll', later, { passive: true, signal })
  const observer = new ResizeObserver(later)
  observer.observe(frame)
  signal.addEventListener('abort', () => observer.disconnect(), { once: true })

  /**
   * Returns the pages that the user sees now. The console loads only these pages again, because new entries at the top
   * of the list must not move the rows that the user is reading.
   */
  const inSight = () =>
    pages.filter(({ element: shown }) => {
      const box = shown?.getBoundingClientRect()
      return box !== undefined && box.top < innerHeight && box.bottom > 0
    })
  const again = (): void => {
    if (everyMs === undefined || signal.aborted) return
    const timer = setTimeout(async () => {
      if (document.visibilityState === 'visible') {
        const seen = inSight()
        for (const page of seen.length === 0 ? pages.slice(0, 1) : seen) await load(page, true)
      }
      again()
    }, everyMs)
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  }
  if (known === null) void load(pages[0]!).then(again)
  else again()
  return {
    element,
    refresh: async () => {
      const shown = pages.filter((page) => page.element !== null)
      for (const page of shown.length === 0 ? pages.slice(0, 1) : shown) {
        page.loading = null
        await load(page)
      }
    },
  }
}

const heightOf = ({ element, height }: { element: HTMLElement | null; height: number }): number =>
  element?.isConnected === true ? element.getBoundingClientRect().height : height

const sum = (
  pages: readonly { height: number; count: number }[],
  of: 'height' | 'count' = 'height',
): number => pages.reduce((total, page) => total + page[of], 0)

/** Sets the height of a gap, and hides a gap without height. */
function setHeight(gap: HTMLElement, height: number): void {
  gap.hidden = height < 1
  const inner = gap.querySelector<HTMLElement>('[data-gap]') ?? gap
  inner.style.height = `${Math.round(height)}px`
}
