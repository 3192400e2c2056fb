/** Measures the reply text of mails whose correct reply text is known. */
import PostalMime from 'postal-mime'
import { replyText, replyTextFromHtml } from '../../../../shared/mail/replyText/replyText.ts'
import type { ReplyCase } from '../../../support/mail/corpora.ts'

/** Removes invisible characters, and replaces white space by one blank. */
const squeeze = (text: string) =>
  text
    .normalize('NFC')
    .replace(/[\u00ad\u200b\u200c\u200e\u200f\u202a-\u202e\ufeff]/g, '')
    .replace(/\s+/g, ' ')
    .trim()
const words = (text: string) =>
  squeeze(text)
    .toLowerCase()
    .match(/[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu) ?? []

const extract = async (mail: ReplyCase) => {
  if (mail.input_kind === 'text') return replyText(mail.input)
  if (mail.input_kind === 'html') return replyTextFromHtml(mail.input)
  const { text, html } = await PostalMime.parse(mail.input)
  return text?.trim() ? replyText(text) : replyTextFromHtml(html ?? '')
}

/**
 * Counts the mails of a set by the quality of their reply text. A reply text counts as `leaked` if it still contains
 * words of other people, and as `emptied` if it is empty although the writer wrote a reply.
 */
export type ReplyScore = {
  all: number
  accepted: number
  core: number
  coreExact: number
  leaked: number
  emptied: number
  misses: { id: string; got: string; wanted: string }[]
  /** Holds one line for each mail whose reply text is not exactly the expected text. */
  others: string[]
}

export async function scoreReplies(mails: readonly ReplyCase[]): Promise<ReplyScore> {
  const counts = { accepted: 0, core: 0, coreExact: 0, leaked: 0, emptied: 0 }
  const misses: ReplyScore['misses'] = []
  const others: string[] = []
  for (const mail of mails) {
    const text = await extract(mail)
    if (text !== mail.expected) others.push(JSON.stringify([mail.id, text]))
    const got = squeeze(text)
    const wanted = [mail.expected, ...(mail.alt ?? [])].map(squeeze)
    const isAccepted = wanted.includes(got)
    counts.accepted += Number(isAccepted)
    counts.core += Number(mail.tier === 'core')
    counts.coreExact += Number(mail.tier === 'core' && got === wanted[0])
    const known = new Set(wanted.flatMap(words))
    counts.leaked += Number(!isAccepted && words(got).some((word) => !known.has(word)))
    counts.emptied += Number(got === '' && !wanted.includes(''))
    if (!isAccepted) misses.push({ id: mail.id, got, wanted: wanted[0]! })
  }
  return { all: mails.length, ...counts, misses, others }
}
