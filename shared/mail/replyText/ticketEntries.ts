/** Recognises the history that a ticket system writes below a reply: entries that begin with a time and a name. */

/**
 * Sets the maximum number of lines in which the function searches for the next entry of a ticket’s history, below an
 * entry.
 */
const ENTRY_MAX_LINES = 40
const DAY = String.raw`(?:\p{Nd}{4}-\p{Nd}{1,2}-\p{Nd}{1,2}|\p{Nd}{1,2}[./-]\p{Nd}{1,2}[./-]\p{Nd}{4})`
const CLOCK = String.raw`\p{Nd}{1,2}[:.]\p{Nd}{2}(?::\p{Nd}{2})?(?: ?[AaPp]\.?[Mm]\.?)?(?: \(?\p{Lu}{2,5}\)?)?`
/**
 * Matches the first line of an entry in a ticket's history, such as `2025-01-22 14:03 (UTC) Lumenox Support:` and
 * `03/11/2025 7:32 PM - Ann Nowak <ann@x.test>`.
 */
const ENTRY = new RegExp(
  String.raw`^${DAY}[ T,]{1,2}${CLOCK}(?: [-–—])? \p{Lu}[^:<>]{1,60}(?<address> <[^\s<>]+@[^\s<>]+>)?:?$`,
  'u',
)

/**
 * Tells whether the history of a ticket begins on a line. Its first line has the form of an entry and stands below a
 * blank line. The entry must name an address, or a second entry must follow, because a person may also write a single
 * line with a time and a name.
 */
export function startsTicketHistory(views: readonly string[], index: number): boolean {
  if (views[index - 1] !== '') return false
  const entry = ENTRY.exec(views[index]!)
  if (entry === null) return false
  if (entry.groups!.address !== undefined) return true
  const end = Math.min(views.length, index + ENTRY_MAX_LINES)
  for (let next = index + 3; next < end; next++) {
    if (views[next - 1] === '' && ENTRY.test(views[next]!)) return true
  }
  return false
}
