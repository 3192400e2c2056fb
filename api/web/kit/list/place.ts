/** Where a person was in each entry of the browser's history: Back returns there. */

/** The pages of a list that were known, without their items. */
export type KnownPages = { token: string | null; height: number; count: number }[]

type Place = { top: number; focus: string | null; lists: Map<string, KnownPages> }

/** Entries that are remembered; the oldest is forgotten first. */
const PLACES_MAX = 100

const places = new Map<string, Place>()
let current = ''
let restored: Place | null = null
let keepers = new Map<string, () => KnownPages>()

/** Notes the place of the entry that is left. */
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

/** Leaves the place that is shown, and enters that of the present entry. */
export function enterPlace(): void {
  note()
  const { place } = (history.state ?? {}) as { place?: string }
  current = place ?? crypto.randomUUID()
  if (place === undefined) history.replaceState({ place: current }, '')
  restored = places.get(current) ?? null
  keepers = new Map()
}

/** Makes a new entry for the same screen, with other filters. */
export function pushPlace(address: string): void {
  note()
  current = crypto.randomUUID()
  history.pushState({ place: current }, '', address)
  restored = null
  keepers = new Map()
}

/** The pages that a list had in this entry; null: it is new. `keep` is asked when the entry is left. */
export function placeOf(list: string, keep: () => KnownPages): KnownPages | null {
  keepers.set(list, keep)
  return restored?.lists.get(list) ?? null
}

/** The content of a screen is on its way for this long at most. */
const ARRIVES_MS = 5_000

/** Scrolls to the place, and focuses what was focused. @returns false: the entry is new. */
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
  // What was there comes after a request. Who scrolls or types meanwhile is left alone.
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
