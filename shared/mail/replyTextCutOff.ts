/** Recognises an attribution that the end of the mail cuts off: `On Mon, 2 Mar 2026 at 9:14 Ann Nowak <ann@x`. */
import { attributionStart, DATE, findVerb, LEAD_IN } from './replyTextAttribution.ts'
import { MAX_MARKER_LENGTH, TIME } from './replyTextMarkers.ts'

/** Lines: date, name and address, each wrapped once. */
const MAX_CUT_LINES = 3

/** An address in brackets, cut or whole, and up to two words behind it. */
const ENDS_IN_ADDRESS =
  /(?:<[^\s<>]{0,80}|[<([][^\s<>()[\]@]+@[^\s<>()[\]@]+[>)\]]{1,2}\S{0,3}(?:\s[^\s.!?]{1,12}){0,2})$/u
/** Mail programs abbreviate the weekday, and write the year. `On Mon, 2 Mar 2026 …`, `пн, 2 мар. 2026 …` */
const WEEKDAY =
  /^(?:(?:On|Am|Le|El|Il|Op|Em|Den|Dne|Dnia)\s|\p{Ll})(?:giorno\s)?\p{L}{0,4}[.,]{0,2}\s.{0,24}\p{Nd}{4}/u
/** Behind the time: a zone or half of the day, then a name. */
const NAMED = /^(?:\s?[AaPp]\.?[Mm]\.?|\sUhr)?,?(?:\s\p{Ll}{2,12})?(?:\s\p{Lu}[\p{L}.'’-]*){1,4}$/u
const HALF_DAY = /^(?:\s?[AaPp]\.?[Mm]\.?|\sUhr)?,?$/u

function isCutAttribution(text: string, above: string, alone: boolean): boolean {
  const time = TIME.exec(text)
  if (time === null || !LEAD_IN.test(text) || !DATE.test(text)) return false
  if (/[:：,]$/.test(above) || /[.!?]$/.test(text)) return false
  if (ENDS_IN_ADDRESS.test(text)) return true
  if (!alone || !WEEKDAY.test(text)) return false
  const rest = text.slice(time.index + time[0].length)
  if (HALF_DAY.test(rest)) return /[.!?。！？…]$/.test(above)
  return NAMED.test(rest) || findVerb(rest) !== 'none'
}

/**
 * The new text before an attribution that begins on the line `index` and is cut off by the end of the mail.
 * @returns '' if the line begins with it; undefined if there is none
 */
export function beforeCutOff(views: readonly string[], index: number): string | undefined {
  if (views.length - index > MAX_CUT_LINES || views[index]!.startsWith('>')) return undefined
  const text = views.slice(index).join('\n').trimEnd().replaceAll('\n', ' ')
  if (text.length > MAX_MARKER_LENGTH || views.indexOf('', index) >= 0) return undefined
  const above = views.findLast((view, at) => at < index && view !== '') ?? ''
  if (isCutAttribution(text, above, views[index - 1] === '')) return ''
  const start = attributionStart(text)
  const own = text.slice(0, start).trim()
  if (!/[\p{L}\p{N}]/u.test(own) || start > views[index]!.length) return undefined
  return isCutAttribution(text.slice(start), own, false) ? own : undefined
}
