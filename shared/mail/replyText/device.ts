/**
 * Recognises the line that a phone or a program adds below a mail: `Sent from my …`. A device name from the list
 * identifies such a line anywhere in a mail. With an unlisted device, the line must have a verb of sending, a word such
 * as `my` or `from`, and a name.
 */
import { headerKind } from './headers.ts'
import { fold, isRule, oneOf, trimDecoration } from './markers.ts'
import {
  DEVICE_WORDS,
  FROM_WORDS,
  MY_WORDS,
  PERSON_WORDS,
  SENT_ENDS,
  SENT_STARTS,
} from './words.ts'

const STARTS_SENT = new RegExp(`^${oneOf(SENT_STARTS)}`)
const ENDS_SENT = new RegExp(`${oneOf(SENT_ENDS)}$`)
const NAMES_DEVICE = new RegExp(oneOf(DEVICE_WORDS))
/**
 * Matches the words of lines such as `Sent from my iPhone`. Every such line with a listed device contains one of these
 * words, and few other lines do. Therefore `isDeviceLine` runs this fast test first.
 */
const MAY_NAME_DEVICE = new RegExp(`my |${oneOf(DEVICE_WORDS)}`)
/** Matches a line with which a mail program names itself: `Get Nine for Android`, `Yahoo Mail on Android`. */
const NAMED_PROGRAM =
  /^(?:Get (?:\p{Lu}\S* ){1,2}|(?:\p{Lu}\S* ){1,3})\p{Ll}{1,4} (?:Android|iOS|iPhone|iPad|Mac|Windows)$/u
/**
 * Matches a device line such as `Sent with Nine`: one or two words, a preposition and a name. The pattern does not
 * match the name of a parcel service such as `DHL`.
 */
const SENT_BY_NAME = new RegExp(
  `^(?:\\p{L}+ ){1,2}${oneOf(FROM_WORDS)} (?:(?!\\p{Ll}{5})\\p{Ll}[^\\s,;.]* ){0,2}(?:[\\p{Lu}\\p{Nd}][^\\s,;.]* ){0,3}(?!\\p{Lu}{2,5}$)\\p{Ll}?[\\p{Lu}\\p{Nd}][^\\s,;.]*(?: app| (?:for|für|pour|para|voor|per|dla|för|til) \\p{Lu}\\S*)?$`,
  'u',
)
/**
 * Matches a line that a device added, such as `Sent from my Foo 12`: a few words, the word `my` and the name of a
 * device. If a noun follows `my`, the name after the noun must look like the name of a thing. Therefore the pattern
 * matches `my tablet Foo 12`, but not `my sister Ann`.
 */
const SENT_FROM_MY = new RegExp(
  `^(?:\\S+ ){1,4}${oneOf(MY_WORDS)} (?:(?:\\p{Ll}\\S{0,9} ){1,2}(?=\\S+ [\\p{Lu}\\p{Nd}]|\\S*[\\p{Ll}\\p{Nd}][\\p{Lu}\\p{Nd}]))?\\p{Ll}?\\p{Lu}[^\\s,;.]*(?: [\\p{Lu}\\p{Nd}][^\\s,;.]*){0,3}(?: (?:phone|tablet|app|watch|glasses|ring|car|reader|hearing aid))?$`,
  'u',
)
/**
 * Matches a device line (such as `Sent from my …`) that gives the kind of the device before its name: `Envoyé depuis ma
 * liseuse Paginéo`. Such a line must be a whole paragraph.
 */
const SENT_FROM_THING = new RegExp(
  `^(?:\\S+ ){1,3}${oneOf(MY_WORDS)} \\p{Ll}{4,14} \\p{Lu}[^\\s,;.]*$`,
  'u',
)
const NAMES_PERSON = new RegExp(` ${oneOf(PERSON_WORDS)} `)
/**
 * Matches a device line such as `Composed with Quillwing Mail`. A short text by the maker of the program may follow
 * such a line.
 */
const COMPOSED = /^(?:Composed|Sent|Written|Typed) (?:with|via|by|using|on) (?:\p{Lu}\S* ?){1,3}$/u
/** Matches a line that a device added, in a language that puts `my` last: `Trimis de pe Foo-ul meu`. */
const MY_LAST = new RegExp(
  `^(?:\\S+ ){1,4}\\p{Ll}?\\p{Lu}\\S*(?: \\p{Nd}\\S*)?(?: \\p{L}{2,5})? ${oneOf(MY_WORDS)}$`,
  'u',
)
/** Matches a device line that ends with the verb for "sent": `Von Nine gesendet`. */
const VERB_LAST =
  /^(?:Von|Mit|Aus|Via|Über) (?:meine[mr] )?(?!\p{Lu}{2,5} )(?:\p{Lu}\S* ){1,3}(?:aus )?(?:gesendet|versendet|verschickt)$/u
/**
 * Matches a device line with a Latin name in another script, such as `ส่งจาก Vivo V29`. The pattern does not match the
 * name of a parcel service such as `DHL`.
 */
const FOREIGN_NAME = /(?<![A-Za-z])[A-Za-z]*(?:[A-Z][a-z]|[a-z][A-Z])[A-Za-z]*/
const FROM_PARTICLE = /[\dA-Za-z\s'’)-](?:から|에서|से |থেকে)/
const OTHER_SCRIPT = /[^\P{L}\p{Script=Latin}]/u
/**
 * Matches a device line like `Wysłano z czytnika Sówka Note`: an impersonal verb, a preposition, one or two nouns and a
 * name of two words. A name of only one word may be the name of a person or a town.
 */
const IMPERSONAL = new RegExp(
  `^\\p{L}+ ${oneOf(FROM_WORDS)} (?:\\p{Ll}\\S* ){1,2}\\p{Lu}\\S*(?: \\S+){1,2}$`,
  'u',
)
/**
 * Matches a device line like `Kumru Posta uygulamasıyla gönderildi`: a name, a word with an ending for "with" or
 * "from", and the verb for "sent".
 */
const NAME_THEN_VERB =
  /^(?:\p{Lu}\S* ){1,3}\p{Ll}\S{2,}(?:[ıiuü]yl[ae]|[dt][ae]n|[rb][óő]l|v[ae]l) \S+$/u
/**
 * Matches a device line with `my` that ends with the verb for "sent": `Per Diktat von meiner Visionar-Brille gesendet`.
 */
const MY_THEN_VERB = new RegExp(
  `^(?:Per|Von|Mit|Aus|Via|Über) (?:\\S+ ){0,3}${oneOf(MY_WORDS)} \\p{Lu}\\S*-\\p{Lu}\\S* \\p{Ll}+$`,
  'u',
)
/** Matches a line of a mail program with a symbol, the word `via` and the name of a device: `⌚ via Tikker`. */
const VIA_NAME = /^\p{So}\ufe0f? ?via \p{Lu}\S*(?: \p{Lu}\S*)?$/u
const FINITE = /\b(?:wurde|wird|wurden|werden|was|is|were|jest|zostało|oli|on)\b/
/**
 * Matches a device name with a case ending for "from": `Foo 12:sta`, `iPhonetik`. The name has a number, or a capital
 * letter inside the word.
 */
const MODEL = /\p{Lu}\S* \p{Nd}{1,3}(?![.\p{Nd}])\S*|\p{Ll}\p{Lu}\p{Ll}/u
/**
 * Matches a short device line with an unlisted device, such as `Sent from my Foo`. The pattern does not match a
 * sentence of the writer about a payment or a parcel, such as `Sent from my side` and `Sent from my account`.
 */
const ANY_DEVICE =
  /^(?:sent|typed|written) (?:from|on|via) my (?!(?:side|end|account|bank|office|part)(?![\p{L}-]))(?:[^\s:]+ ?){1,3}$|^(?:[\p{L}.]+ ){1,2}(?:from|via) (?:mobile|phone|iphone|ipad)$|^from my (?:mobile|phone|iphone|ipad|cell)(?: \S+)?$/u

/**
 * Tells whether a line names a device and also ends the mail or a paragraph. A long line that is followed by text
 * counts as an ordinary sentence.
 */
export function isClosingDeviceLine(views: readonly string[], index: number): boolean {
  const view = views[index]!
  const next = views[index + 1] ?? ''
  const last =
    next === '' || next.startsWith('>') || isRule(next) || isClosingAddress(views, index + 1)
  if (last && isUnlistedDevice(view, views[index - 1] === '') && !goesOn(views, index)) return true
  if (!isDeviceLine(view)) return false
  if (last) return true
  return view.split(' ').length <= 6 || headerKind(next) !== undefined || isDeviceLine(next)
}

/**
 * Tells whether a line holds only a URL and ends a paragraph. Some mail programs add the URL of their maker in this
 * form below a line such as `Sent from my iPhone`.
 */
export const isClosingAddress = (views: readonly string[], index: number): boolean =>
  /^https?:\S+$/.test(views[index] ?? '') && (views[index + 1] ?? '') === ''

/**
 * Tells whether a full sentence follows a line such as `Sent from Berlin`. If a sentence follows, the line may be the
 * writer's own heading and not a device line.
 */
function goesOn(views: readonly string[], index: number): boolean {
  let next = index + 1
  while (next < index + 4 && views[next] === '') next++
  const view = views[next] ?? ''
  return /^[^>].*[.!?。！？]$/u.test(view)
}

/**
 * Tells whether a line ends like the German device line "Von meinem iPhone gesendet". Such a line ends with a verb such
 * as "gesendet" (sent) and names no person. Therefore a line with a word such as "ich" (I) or "hat" (has) is no device
 * line.
 */
function endsSent(lower: string): boolean {
  return ENDS_SENT.test(lower) && !/\b(?:ich|wir|hat|haben?)\b/.test(lower)
}

/** Removes from a line the links, the brackets, and the marks around the text such as stars and dashes. */
function bare(view: string): string {
  const text = trimDecoration(view.replace(/<[^<>\s]{4,}>|\]?\(?https?:\S+/g, '').trim())
  return text.replace(/^[<([«]{1,2}|[>)\].!。»\s]{1,4}$/g, '').trim()
}

/**
 * Recognises a device line (such as `Sent from my Foo`) whose device or program is not in the list.
 * @param alone is true if the line begins a paragraph. A line inside a paragraph counts as a device line (`Sent from my
 * …`) only if it contains a word such as `my`.
 */
function isUnlistedDevice(view: string, alone: boolean): boolean {
  if (view.length > 120) return false
  const text = bare(view)
  const lower = fold(text)
  if (alone && text.length <= 80) {
    if (NAMED_PROGRAM.test(text) || VERB_LAST.test(text)) return true
  }
  // A person ends a sentence with a punctuation mark. Therefore a line with such a mark at its end is no device line
  // (`Sent from my …`).
  const isOpen = alone && text.length <= 80 && !/[.!?。…]$/u.test(view) && !FINITE.test(lower)
  if (isOpen && VIA_NAME.test(view)) return true
  const starts = STARTS_SENT.test(lower)
  if (!starts && !endsSent(lower)) return false
  const isEnglish = /^(?:sent|typed|written|posted|get)\b/.test(lower)
  if (isOpen && starts && !isEnglish && IMPERSONAL.test(text)) return true
  if (isOpen && starts && SENT_FROM_THING.test(text) && !NAMES_PERSON.test(lower)) return true
  if (isOpen && !starts && (NAME_THEN_VERB.test(text) || MY_THEN_VERB.test(text))) return true
  if (isOpen && !starts && /(?:端末|メール|アプリ|スマホ|携帯).{0,20}から送信$/.test(lower))
    return true
  // A sentence of excuse may follow, as in `Sent from my Foo 12. Please excuse typos.` The code then tests only the
  // part before it.
  const [head = '', ...rest] = text.split(/[.,;!]\s|\s[-–—|]\s/)
  const excuse = rest.length <= 2 && rest.join(' ').split(' ').length <= 10 && !text.endsWith('?')
  if (starts && excuse && SENT_FROM_MY.test(head)) return true
  if (alone && starts && excuse && rest.length > 0 && COMPOSED.test(head)) return true
  if (!alone || rest.length > 0 || text.length > 80 || text.split(' ').length > 8) return false
  if (starts && (SENT_BY_NAME.test(text) || MY_LAST.test(text))) return true
  if (OTHER_SCRIPT.test(text)) {
    return FOREIGN_NAME.test(text) && (starts || FROM_PARTICLE.test(text))
  }
  return MODEL.test(text) && !(starts && isEnglish)
}

/**
 * Recognises device lines such as "Sent from my iPhone" and "Get Outlook for Android", and similar lines in other
 * languages.
 */
export function isDeviceLine(view: string): boolean {
  if (view.length > 200 || !MAY_NAME_DEVICE.test(fold(view))) return false
  const lower = fold(bare(view))
  const words = lower.split(' ')
  if (lower.length > 120 || words.length > 14 || /[?:]$/.test(lower)) return false
  if (/outlook/.test(lower) && /ios|android|iphone/.test(lower) && words.length <= 7) return true
  if (words.length <= 7 && /(?:from|via|on) /.test(lower) && ANY_DEVICE.test(lower)) return true
  // The code tests only the first words, because a device line names the device near its beginning. The writer's own
  // sentence may name a device near its end: "Sent from my desk, easier than a phone".
  const opening = words.slice(0, 8).join(' ').slice(0, 60)
  if (STARTS_SENT.test(lower)) {
    return NAMES_DEVICE.test(opening)
  }
  const ends = words.length <= 9 && endsSent(lower)
  return ends && NAMES_DEVICE.test(lower)
}
