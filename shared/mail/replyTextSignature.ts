/**
 * Recognises signatures, the device lines of phones and apps, and the notices of companies and lists
 * below a mail.
 */
import { headerKind } from './replyTextHeaders.ts'
import { fold, isRule, oneOf, trimDecoration } from './replyTextMarkers.ts'
import {
  DEVICE_WORDS,
  FOOTER_STARTS,
  LEGAL_STARTS,
  LEGAL_WORDS,
  SENT_ENDS,
  SENT_STARTS,
} from './replyTextWords.ts'

/** Most lines of a signature below a dash rule. */
const MAX_SIGNATURE_LINES = 12
const STARTS_SENT = new RegExp(`^${oneOf(SENT_STARTS)}`)
const ENDS_SENT = new RegExp(`${oneOf(SENT_ENDS)}$`)
const NAMES_DEVICE = new RegExp(oneOf(DEVICE_WORDS))
/** Every device line holds one of these; few other lines do. */
const MAY_NAME_DEVICE = new RegExp(`my |${oneOf(DEVICE_WORDS)}`)
const STARTS_FOOTER = new RegExp(`^${oneOf(FOOTER_STARTS)}`)
const STARTS_LEGAL = new RegExp(`^${oneOf(LEGAL_STARTS)}`)
/** A notice begins within this many last lines. */
const MAX_FOOTER_LINES = 40

const CONTACT = /[^\s@]@[^\s@]|www\.|https?:|\+?\p{Nd}[\p{Nd}\s().-]{6,}/u
const SURE_NOTICE =
  /^this (?:e-?mail|message|communication) (?:and any .{0,40} )?(?:is|are|may be|may contain|contains) (?:strictly |highly |legally |private and )?(?:confidential|privileged|intended)/
/** Unlisted devices, and lines without a verb: `Sent from my TI-85`, `Bob via mobile`. */
/** A program that names itself: `Get Nine for Android`, `Yahoo Mail on Android`. */
const NAMED_PROGRAM =
  /^(?:Get (?:\S+ ){1,2}|(?:\p{Lu}\S* ){1,3})\p{Ll}{1,4} (?:Android|iOS|iPhone|iPad|Mac|Windows)$/u
/** `Sent with Nine`: one or two words, a preposition and a name. */
const SENT_BY_NAME =
  /^(?:\p{L}+ ){1,2}(?:from|via|with|using|by|von|aus|mit|über|de|depuis|avec|desde|con|da|dal|dalla|tramite|através do|do|com|van|vanaf|vanuit|met|z|ze|za pomocą|с|из|з|із|från|med|fra|din|pe) (?:(?!\p{Ll}{5})[^\s,;.]+ ){0,3}[\p{Lu}\p{Nd}][^\s,;.]*$/u
/** `-- Owen` or `--Owen Hale`: delimiter and name on one line. */
const DASHED_NAME = /^--\s?\p{Lu}[\p{L}.'’-]*(?: \p{Lu}[\p{L}.'’-]*){0,2}$/u
const SCANNERS =
  /\b(?:avast|avg|avira|mcafee|norton|eset|kaspersky|bitdefender|f-secure|clamav|mailscanner|sophos|malwarebytes)\b/
const SCANNED = /virus|вірус|вирус|malware|ウイルス|病毒|바이러스|scan|geprüft|www\.|https?:/
const PRINTING = /print|druck|imprim|impres|stamp|afdruk|skriv|tulosta|wydruk|tisk|печат|друк/
const ENVIRONMENT =
  /environment|umwelt|environnement|ambient|milieu|miljö|miljø|ympäristö|środowisk|prostřed|природ|довкілл/
const ANY_DEVICE =
  /^(?:sent|typed|written) (?:from|on|via) my (?:\S+ ?){1,3}$|^(?:[\p{L}.]+ ){1,2}(?:from|via) (?:mobile|phone|iphone|ipad)$|^from my (?:mobile|phone|iphone|ipad|cell)(?: \S+)?$/u

/**
 * RFC 3676 prescribes `-- `. Many clients trim it, Outlook and Mailman draw underscores, people draw
 * rules. Headings and tables have rules too: all lines below must look like a signature.
 */
export function startsSignature(views: readonly string[], index: number): boolean {
  const view = views[index]!
  if (/^(?:\*?--\*?|__|—|––|- -)$/.test(view)) return true
  const above = views[index - 1]
  if (above === '' && DASHED_NAME.test(view) && (views[index + 1] ?? '') === '') return true
  if (above === undefined || view.length < 3 || !isRule(view)) return false
  if (view.startsWith('_____') && view.length >= 30) return true
  if (!/^$|[.!?]$/.test(above)) return false
  let contact = false
  let brief = true
  let count = 0
  for (let i = index + 1; i < views.length && !views[i]!.startsWith('>'); i++) {
    const line = views[i]!
    if (line === '') continue
    if (++count > MAX_SIGNATURE_LINES || line.length > 80) return false
    contact ||= CONTACT.test(line)
    brief &&= line.split(' ').length <= 4 && !/^(?:[-*•]|\p{Nd}+[.)]|p\.?\s?s)/iu.test(line)
  }
  return contact || (brief && count > 0 && count <= 4)
}

/** A device line closes a text or a paragraph. A longer line inside a text is a sentence. */
export function isClosingDeviceLine(views: readonly string[], index: number): boolean {
  const view = views[index]!
  const next = views[index + 1] ?? ''
  const alone = views[index - 1] === '' && (next === '' || next.startsWith('>'))
  if (alone && isProgramLine(view)) return true
  if (!isDeviceLine(view)) return false
  if (next === '' || next.startsWith('>') || isRule(next)) return true
  return view.split(' ').length <= 6 || headerKind(next) !== undefined || isDeviceLine(next)
}

/** A paragraph of its own that names a program nobody has listed: `Sent with Nine`, `Von Nine gesendet`. */
function isProgramLine(view: string): boolean {
  if (view.length > 80) return false
  const text = trimDecoration(view.replace(/<[^<>\s]{4,}>|\]?\(?https?:\S+/g, '').trim())
  if (NAMED_PROGRAM.test(text)) return true
  const lower = fold(text)
  if (STARTS_SENT.test(lower) && SENT_BY_NAME.test(text)) return true
  const verbLast =
    /^(?:Von|Mit|Aus|Via|Über) (?:\p{Lu}\S* ){1,3}(?:gesendet|versendet|verschickt)$/u
  return verbLast.test(text)
}

/** "Sent from my iPhone", "Get Outlook for Android" and the like in other languages. */
export function isDeviceLine(view: string): boolean {
  if (view.length > 200 || !MAY_NAME_DEVICE.test(fold(view))) return false
  const text = trimDecoration(view.replace(/<[^<>\s]{4,}>|\]?\(?https?:\S+/g, ''))
  const lower = fold(text.replace(/^[<([«]{1,2}|[>)\].!。»\s]{1,4}$/g, '').trim())
  const words = lower.split(' ')
  if (lower.length > 120 || words.length > 14 || /[?:]$/.test(lower)) return false
  if (/outlook/.test(lower) && /ios|android|iphone/.test(lower) && words.length <= 7) return true
  if (words.length <= 7 && /(?:from|via|on) /.test(lower) && ANY_DEVICE.test(lower)) return true
  // A device late in the line belongs to a sentence: "Sent from my desk, easier than a phone".
  const opening = words.slice(0, 8).join(' ').slice(0, 60)
  if (STARTS_SENT.test(lower)) {
    return NAMES_DEVICE.test(opening)
  }
  const ends = words.length <= 9 && ENDS_SENT.test(lower)
  return ends && NAMES_DEVICE.test(lower)
}

/**
 * Cuts a list footer or a legal notice off the end. A notice has an opening and two legal words:
 * people write about confidential matters too.
 */
export function dropFooter(text: string): string {
  const lines = text.split('\n')
  const first = Math.max(1, lines.length - MAX_FOOTER_LINES)
  for (let i = first; i < lines.length; i++) {
    const lower = fold(lines[i]!.slice(0, 80).replace(/^[\s*_(]+/, ''))
    if (STARTS_FOOTER.test(lower) || isAddedNote(lines, i)) {
      return above(lines, i)
    }
    if (!STARTS_LEGAL.test(lower)) continue
    const rest = fold(lines.slice(i).join(' ').slice(0, 4000)).trimStart()
    const hits = LEGAL_WORDS.filter((word) => rest.includes(word)).length
    if (hits >= 2 || SURE_NOTICE.test(rest)) {
      return above(lines, i)
    }
  }
  return text
}

/** The lines above `index`, without the rule that set the notice off. */
function above(lines: readonly string[], index: number): string {
  let end = index
  while (end > 0 && (lines[end - 1]!.trim() === '' || isRule(lines[end - 1]!.trim()))) end--
  return lines.slice(0, end).join('\n')
}

/** A last paragraph of a virus scanner, or one that asks not to print for the environment's sake. */
function isAddedNote(lines: readonly string[], index: number): boolean {
  const before = lines[index - 1]!.trim()
  if (lines.length - index > 4 || (before !== '' && !isRule(before))) return false
  const note = fold(lines.slice(index).join(' '))
  if (note.length > 400) return false
  return (
    (SCANNERS.test(note) && SCANNED.test(note)) || (PRINTING.test(note) && ENVIRONMENT.test(note))
  )
}
