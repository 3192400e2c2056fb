/** Recognises an attribution at which a cut-off mail ends: `On Mon, 2 Mar 2026 at 9:14 Ann Nowak <ann@x`. */
import { attributionStart, DATE, findVerb, LEAD_WORDS } from './attribution.ts'
import { isOriginalTitle, MAX_MARKER_LENGTH, TIME, trimDecoration } from './markers.ts'

/**
 * Sets the maximum number of lines of an attribution that the end of the mail cuts off. Such an attribution has lines
 * for the date, the name and the address.
 */
const MAX_CUT_LINES = 3
/** Sets the maximum number of characters of a cut attribution such as `Ann Nowak <ann@x.test>, 2 Mar 2026, 09:14`. */
const MAX_NAMED_LENGTH = 160
const ALL_TIMES = new RegExp(TIME, 'giu')

/**
 * Matches a text that ends with an email address in brackets. The address may be incomplete, or up to two words may
 * follow it.
 */
const ENDS_IN_ADDRESS =
  /(?:<[^\s<>]{0,80}|[<([][^\s<>()[\]@]+@[^\s<>()[\]@]+[>)\]]{1,2}\S{0,3}(?:\s[^\s.!?]{1,12}){0,2})$/u
/** Matches an email address without its closing bracket at the end of a mail, as in `(ann@mail.`. */
const OPEN_ADDRESS = /[<(][^\s<>()@]{1,64}@[^\s<>()@]{0,80}$/
/**
 * Matches the few words that may stand before the date of an attribution (`On …, Bob wrote:`). In scripts other than
 * Latin, more words may stand there, because ordinary sentences in these scripts do not look like an attribution.
 */
const SHORT_LEAD_IN = new RegExp(
  `^(?:(?:${LEAD_WORDS})?(?:[^\\s\\p{Nd}:：]{1,14}\\s+){0,2}|(?:[^\\s\\p{Nd}\\p{Script=Latin}]{1,14}\\s+){3,4})[^\\s\\p{Nd}]{0,4}\\p{Nd}`,
  'u',
)
/**
 * Matches the start of an attribution with an abbreviated weekday and a year, as mail programs write it: `On Mon, 2 Mar
 * 2026 …`, `пн, 2 мар. 2026 …`.
 */
const WEEKDAY = new RegExp(
  `^(?:${LEAD_WORDS}|\\p{Ll})\\p{L}{0,4}[.,]{0,2}\\s.{0,24}\\p{Nd}{4}`,
  'u',
)
/**
 * Matches a date of digits, as in `Le 12/02/2025 à 09:37, Ann Now`. An ordinary sentence does not begin with a numeric
 * date and a time in this form.
 */
const DIGITS_DATE = new RegExp(
  `^(?:${LEAD_WORDS})?\\p{Nd}{1,4}[./-]\\p{Nd}{1,2}[./-]\\p{Nd}{2,4},?(?:\\s\\p{L}{1,3})?\\s\\p{Nd}`,
  'u',
)
/**
 * Matches an attribution that begins with the sender's name and address, such as `Ann Nowak <ann@x.test> wrote (2 Ma`.
 */
const NAMED_THEN_VERB =
  /^["'\p{L}][^<>@]{0,60}<[^\s<>@]+@[^\s<>@]+>\s(?=\P{Lu}{2,40}(?:\p{Lu}\p{Ll}{0,3}[.,]{0,2})?$)/u
/** Matches an attribution with the verb between the address and the date, such as `Ann <ann@x.test> ezt írta (2026`. */
const VERB_THEN_DATE =
  /^["'\p{L}][^<>@]{0,60}<[^\s<>@]+@[^\s<>@]+>\s[^.!?]{2,30}\p{Nd}{4}[.,\s\p{L}\p{Nd}]{0,24}$/u
const ENDS_IN_DATE = /\p{Nd}{4}\s\p{Ll}{1,3}$/u
/** Matches the text that may follow the time of an attribution: seconds, a.m. or p.m., and a zone. */
const CLOCK =
  /^(?<seconds>:\p{Nd}{2})?(?:\s?[AaPp]\.?[Mm]\.?|\s\p{Ll}\.\p{Ll}\.|\s[صم](?!\p{L})|\sUhr)?(?:\s\p{Lu}{3,5})?,?/u
const NAMED = /^(?:\s\p{Ll}{1,12}){0,2}(?:\s\p{Lu}[\p{L}.'’-]*){1,4}$/u
/** Matches the verb of Gmail's Arabic attribution, which stands before the name. */
const VERB_THEN_NAME = /^\sتمت كتابة/
const NAMED_FIRST =
  /^["'\p{L}][^<>@]{0,60}<[^\s<>@]+@[^\s<>@]+>.{0,12}\p{Nd}{4}.{0,24}\p{Nd}[:.]\p{Nd}/u
/**
 * Matches the text after a time of day in the writer's own sentence, as in `9:14 we got mail from <a@x.test>`. Such a
 * line is no attribution.
 */
const SENTENCE = /^[.!?:]\s|\p{L}{5}[.!?]\s|\s[a-z]{2,}\s[a-z]{2,}\s<[^\s<>]+>/u
const TITLE = /^-{3,}\s?\p{Lu}/u

function isCutAttribution(text: string, above: string, alone: boolean): boolean {
  // A list of addresses at the end of a mail is no attribution, because an attribution has only one address.
  if (/[:：,>]$/.test(above) || />.*</.test(text)) return false
  if (/[.!?。]$/.test(text) && !OPEN_ADDRESS.test(text)) return false
  if (NAMED_FIRST.test(text)) return text.length <= MAX_NAMED_LENGTH
  if (alone && VERB_THEN_DATE.test(text) && findVerb(text) !== 'none') return true
  if (alone && NAMED_THEN_VERB.test(text) && findVerb(text) !== 'none') return true
  if (!SHORT_LEAD_IN.test(text) || !DATE.test(text)) return false
  if (WEEKDAY.test(text) && ENDS_IN_DATE.test(text)) return alone
  const time = [...text.matchAll(ALL_TIMES)].at(-1)
  if (time === undefined) return false
  const clock = CLOCK.exec(text.slice(time.index + time[0].length))!
  const rest = text.slice(time.index + time[0].length + clock[0].length)
  if (ENDS_IN_ADDRESS.test(text) || OPEN_ADDRESS.test(text)) return !SENTENCE.test(rest)
  if (!alone) return false
  const verb = findVerb(rest)
  if (verb !== 'none') return verb === 'last' || NAMED.test(rest)
  if (VERB_THEN_NAME.test(rest)) return true
  const isDated = clock[0].endsWith(',') && DIGITS_DATE.test(text)
  if (!clock.groups!.seconds && !WEEKDAY.test(text) && !isDated) return false
  return rest === '' ? /[.!?。！？…]$/.test(above) : NAMED.test(rest)
}

/**
 * Returns the new text of a mail that ends within an attribution (`On …, Bob wrote:`). The line `index` is the first
 * line of the attribution.
 * @returns the new text before the cut attribution. The empty text means that the line `index` begins with the
 * attribution. The result undefined means that the mail does not end within an attribution.
 */
export function beforeCutOff(views: readonly string[], index: number): string | undefined {
  if (views.length - index > MAX_CUT_LINES) return undefined
  // A quote below the lines shows that the attribution is whole.
  if (views.slice(index).some((view) => view.startsWith('>'))) return undefined
  const text = views.slice(index).join('\n').trimEnd().replaceAll('\n', ' ')
  if (text.length > MAX_MARKER_LENGTH || views.includes('', index)) return undefined
  if (TITLE.test(text) && isOriginalTitle(trimDecoration(text))) return ''
  const above = views.findLast((view, at) => at < index && view !== '') ?? ''
  if (isCutAttribution(text, above, views[index - 1] === '')) return ''
  const start = attributionStart(text)
  const own = text.slice(0, start).trim()
  if (!/[\p{L}\p{N}]/u.test(own) || start > views[index]!.length) return undefined
  return isCutAttribution(text.slice(start), own, false) ? own : undefined
}
