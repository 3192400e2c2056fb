/**
 * Remembers the user's scroll position for each entry of the browser history, so that the Back button returns to this
 * position.
 */

/** Holds the pages that a list has loaded, but not the items of these pages. */
export type KnownPages = { token: string | null; height: number; count: number }[]

type Place = { top: number; focus: string | null; lists: Map<string, KnownPages> }

/**
 * Sets the maximum number of history entries for which the console remembers the scroll position. Above this number, it
 * forgets the oldest entry's position.
 */
const PLACES_MAX = 100

const places = new Map<string, Place>()
let current = ''
let restored: Place | null = null
let keepers = new Map<string, () => KnownPages>()

/** Stores the user's scroll position for the history entry that the user leaves. */
function note(): void {
  if (current === '') return
  const focused = (document.activeElement as HTMLElement | null)?.closest<HTMLElement>(
    'main [data-keep]',
  )
  const lists = new Map([...keepers].map(([name, keep]) => [name, keep()]))
  places.delete(current)
  places.set(current, { top: scrollY, focus: focused?.dataset.keep ?? null, lists })
  for (const oldest of places.keys()) {
    if (places.size <= PLACES_MAX) break
    places.delete(oldest)
  }
}

/**
 * Stores the user's scroll position for the history entry that the user leaves, and switches to the stored position of
 * the current entry.
 */
export function enterPlace(): void {
  note()
  const { place } = (history.state ?? {}) as { place?: string }
  current = place ?? crypto.randomUUID()
  if (place === undefined) history.replaceState({ place: current }, '')
  restored = places.get(current) ?? null
  keepers = new Map()
}

/** Adds a browser history entry for the same screen with other filters. */
export function pushPlace(address: string): void {
  note()
  current = crypto.randomUUID()
  history.pushState({ place: current }, '', address)
  restored = null
  keepers = new Map()
}

/**
 * Returns the pages that a list had loaded in the current history entry. Null means that this entry has no such list
 * yet. The list calls the function `keep` when the user leaves the entry.
 */
export function placeOf(list: string, keep: () => KnownPages): KnownPages | null {
  keepers.set(list, keep)
  return restored?.lists.get(list) ?? null
}

/** Sets how many milliseconds the console waits for the content of a screen before it restores the scroll position. */
const ARRIVES_MS = 5_000

/**
 * Scrolls to the stored position of the history entry, and restores the keyboard focus. @returns false if the history
 * entry has no stored position.
 */
export function returnToPlace(main: HTMLElement): boolean {
  if (restored === null) {
    scrollTo(0, 0)
    return false
  }
  const { top, focus } = restored
  const scroll = () => {
    scrollTo(0, top)
    return Math.abs(scrollY - top) < 2
  }
  const focusIt = () => {
    const kept = [...main.querySelectorAll<HTMLElement>('[data-keep]')]
    const target = kept.find(({ dataset }) => dataset.keep === focus)
    target?.focus({ preventScroll: true })
    return target !== undefined
  }
  let isThere = scroll()
  let isFocused = focus === null || focusIt()
  if (isThere && isFocused) return focus !== null
  // The content at the stored scroll position appears only after a request to the service. If the user scrolls or types
  // before that, the console does not restore the position.
  const ends = new AbortController()
  const observer = new MutationObserver(() => {
    isThere ||= scroll()
    isFocused ||= focusIt()
    if (isThere && isFocused) ends.abort()
  })
  observer.observe(main, { childList: true, subtree: true })
  const { signal } = ends
  signal.addEventListener('abort', () => observer.disconnect())
  for (const act of ['wheel', 'keydown', 'pointerdown', 'touchmove', 'hashchange']) {
    addEventListener(act, () => ends.abort(), { signal, passive: true })
  }
  setTimeout(() => ends.abort(), ARRIVES_MS)
  return focus !== null
}
