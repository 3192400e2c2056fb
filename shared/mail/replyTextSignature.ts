/**
 * Recognises signatures, the device lines of phones and apps, and the notices of companies and lists
 * below a mail.
 */
import { fold, headerKind, isRule, trimDecoration } from './replyTextMarkers.ts'
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
/** A notice begins within this many last lines. */
const MAX_FOOTER_LINES = 40

const CONTACT = /[^\s@]@[^\s@]|www\.|https?:|\+?\p{Nd}[\p{Nd}\s().-]{6,}/u
const SURE_NOTICE =
  /^this (?:e-?mail|message|communication) (?:and any .{0,40} )?(?:is|are|may be|may contain|contains) (?:strictly |highly |legally |private and )?(?:confidential|privileged|intended)/
/** Unlisted devices, and lines without a verb: `Sent from my TI-85`, `Bob via mobile`. */
const ANY_DEVICE =
  /^(?:sent|typed|written) (?:from|on|via) my (?:\S+ ?){1,3}$|^(?:[\p{L}.]+ ){1,2}(?:from|via) (?:mobile|phone|iphone|ipad)$|^from my (?:mobile|phone|iphone|ipad|cell)(?: \S+)?$/u

/**
 * RFC 3676 prescribes `-- `. Many clients trim it, Outlook and Mailman draw underscores, people draw
 * rules. Headings and tables have rules too: all lines below must look like a signature.
 */
export function startsSignature(views: readonly string[], index: number): boolean {
  const view = views[index]!
  if (/^(?:--|__|—|––|- -)$/.test(view)) return true
  const above = views[index - 1]
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
  if (!isDeviceLine(view)) return false
  const next = views[index + 1] ?? ''
  if (next === '' || next.startsWith('>') || isRule(next)) return true
  return view.split(' ').length <= 6 || headerKind(next) !== undefined || isDeviceLine(next)
}

/** "Sent from my iPhone", "Get Outlook for Android" and the like in other languages. */
export function isDeviceLine(view: string): boolean {
  if (view.length > 200) return false
  const text = trimDecoration(view.replace(/<[^<>\s]{4,}>|\]?\(?https?:\S+/g, ''))
  const lower = fold(text.replace(/^[<([«]{1,2}|[>)\].!。»\s]{1,4}$/g, '').trim())
  const words = lower.split(' ')
  if (lower.length > 120 || words.length > 14 || /[?:]$/.test(lower)) return false
  if (/outlook/.test(lower) && /ios|android|iphone/.test(lower) && words.length <= 7) return true
  if (words.length <= 7 && ANY_DEVICE.test(lower)) return true
  // A device late in the line belongs to a sentence: "Sent from my desk, easier than a phone".
  const opening = words.slice(0, 8).join(' ').slice(0, 60)
  if (SENT_STARTS.some((start) => lower.startsWith(start))) {
    return DEVICE_WORDS.some((word) => opening.includes(word))
  }
  const ends = words.length <= 9 && SENT_ENDS.some((end) => lower.endsWith(end))
  return ends && DEVICE_WORDS.some((word) => lower.includes(word))
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
    if (FOOTER_STARTS.some((start) => lower.startsWith(start))) return lines.slice(0, i).join('\n')
    if (!LEGAL_STARTS.some((start) => lower.startsWith(start))) continue
    const rest = fold(lines.slice(i).join(' ').slice(0, 4000)).trimStart()
    const hits = LEGAL_WORDS.filter((word) => rest.includes(word)).length
    if (hits >= 2 || SURE_NOTICE.test(rest)) {
      return lines.slice(0, i).join('\n')
    }
  }
  return text
}
