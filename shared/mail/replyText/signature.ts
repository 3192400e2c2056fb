/** Recognises signatures, and the notices of companies and mailing lists below a mail. */
import { fold, isRule, oneOf } from './markers.ts'
import { FOOTER_STARTS, LEGAL_STARTS, LEGAL_WORDS } from './words.ts'

/** Sets the maximum number of lines of a signature below a line of dashes. */
const MAX_SIGNATURE_LINES = 12
const STARTS_FOOTER = new RegExp(`^${oneOf(FOOTER_STARTS)}`)
const STARTS_LEGAL = new RegExp(`^${oneOf(LEGAL_STARTS)}`)
/** Sets how many lines at the end of a mail `dropFooter` searches for a footer or a legal notice. */
const MAX_FOOTER_LINES = 40

const CONTACT = /[^\s@]@[^\s@]|www\.|https?:|\+?\p{Nd}[\p{Nd}\s().-]{6,}/u
const SURE_NOTICE =
  /^this (?:e-?mail|message|communication) (?:and any .{0,40} )?(?:is|are|may be|may contain|contains) (?:strictly |highly |legally |private and )?(?:confidential|privileged|intended)/
/** Matches the end of a sentence, but not of an abbreviation such as `Inc.` in a signature. */
const SENTENCE_END = /\p{Ll}{4}[.!?]$/u
/**
 * Matches the first line of a signature that has the delimiter and the name on one line: `-- Owen` or `--Owen Hale`.
 */
const DASHED_NAME = /^--\s?\p{Lu}[\p{L}.'’-]*(?: \p{Lu}[\p{L}.'’-]*){0,2}$/u
const SCANNERS =
  /\b(?:avast|avg|avira|mcafee|norton|eset|kaspersky|bitdefender|f-secure|clamav|mailscanner|sophos|malwarebytes)\b/
const SCANNED = /virus|вірус|вирус|malware|ウイルス|病毒|바이러스|scan|geprüft|www\.|https?:/
const PRINTING = /print|druck|imprim|impres|stamp|afdruk|skriv|tulosta|wydruk|tisk|печат|друк/
const ENVIRONMENT =
  /environment|umwelt|environnement|ambient|milieu|miljö|miljø|ympäristö|środowisk|prostřed|природ|довкілл/

/**
 * Tells whether a signature starts on this line. RFC 3676 prescribes `-- ` as the line above a signature, but many
 * clients trim its blank. Outlook and Mailman draw a line of underscores, and people draw lines of other characters.
 * Headings and tables also have drawn lines, so all lines below a drawn line must look like a signature.
 */
export function startsSignature(views: readonly string[], index: number): boolean {
  const view = views[index]!
  // The line `--` starts no signature if the next line is a comment of SQL or Lua, such as `-- give the space back`.
  if (/^(?:\*?--\*?|__|—|––|- -)$/.test(view)) return !/^--\s?\p{L}/u.test(views[index + 1] ?? '')
  const above = views[index - 1]
  if (repeatsName(views, index)) return true
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
    brief &&= !SENTENCE_END.test(line)
  }
  return contact || (brief && count > 0 && count <= 4)
}

/** Matches a line that holds only a first name, below a sign-off. */
const FIRST_NAME = /^\p{Lu}[\p{L}'’-]{1,20}$/u
const SIGN_OFF = /^[^.!?]{2,40}[,!]?$/u
const FULL_NAME = /^(?:\p{Lu}[\p{L}.'’-]*(?: |$)){2,4}/u

/**
 * Tells whether a signature without a delimiter starts on this line. The line must hold the writer's full name, and a
 * line about the writer's work must follow. A sign-off and a line with only the first name must stand above it.
 */
function repeatsName(views: readonly string[], index: number): boolean {
  const name = views[index - 2] ?? ''
  if (views[index - 1] !== '' || !FIRST_NAME.test(name)) return false
  if (!SIGN_OFF.test(views[index - 3] ?? '')) return false
  const view = views[index]!
  const next = views[index + 1] ?? ''
  if (!view.startsWith(`${name} `) || !FULL_NAME.test(view) || view.length > 60) return false
  return next !== '' && next.length <= 80 && !/[.!?]$/.test(next)
}

/**
 * Removes a legal notice or the footer of a mailing list from the end of a mail. A legal notice must have an opening
 * phrase and two legal words, because a person may also write about a confidential matter.
 */
export function dropFooter(text: string): string {
  const lines = text.split('\n')
  const first = Math.max(1, lines.length - MAX_FOOTER_LINES)
  for (let i = first; i < lines.length; i++) {
    const lower = fold(lines[i]!.slice(0, 80).replace(/^[\s*_(]+/, ''))
    if ((STARTS_FOOTER.test(lower) && isFooter(lines, i)) || isAddedNote(lines, i)) {
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

/**
 * Tells whether the footer of a mailing list or newsletter starts on the line `index`. A footer contains an address or
 * a link, or is short. A paragraph with "I" or "we", or with a question mark at its end, is the writer's own text.
 */
function isFooter(lines: readonly string[], index: number): boolean {
  const footer = lines.slice(index).join(' ').slice(0, 600).trim()
  if (/\b(?:I|we|my|our)\b/.test(footer.slice(0, 120)) || footer.endsWith('?')) return false
  return CONTACT.test(footer) || footer.length <= 80
}

/**
 * Returns the lines that stand above the line `index`, without the blank lines and the lines of dashes at their end.
 */
function above(lines: readonly string[], index: number): string {
  const kept = lines.slice(0, index)
  const last = kept.findLastIndex((line) => line.trim() !== '' && !isRule(line.trim()))
  return kept.slice(0, last + 1).join('\n')
}

/** Recognises a last paragraph that a virus scanner added, or that asks people not to print the mail. */
function isAddedNote(lines: readonly string[], index: number): boolean {
  const before = lines[index - 1]!.trim()
  if (lines.length - index > 4 || (before !== '' && !isRule(before))) return false
  const note = fold(lines.slice(index).join(' '))
  if (note.length > 400) return false
  return (
    (SCANNERS.test(note) && SCANNED.test(note)) || (PRINTING.test(note) && ENVIRONMENT.test(note))
  )
}
