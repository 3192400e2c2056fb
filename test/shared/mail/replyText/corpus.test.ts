/** Replies that were written without sight of the rules. */
import { describe, expect, test } from 'bun:test'
import PostalMime from 'postal-mime'
import { replyText, replyTextFromHtml } from '../../../../shared/mail/replyText/replyText.ts'
import { type ReplyCase, replyCorpora } from '../../../support/mail/corpora.ts'

describe('corpus', () => {
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
    const { text, html } = await PostalMime.parse(mail.input)
    return text?.trim() ? replyText(text) : replyTextFromHtml(html ?? '')
  }

  /** Mails at least exact or accepted, core mails at least exact, mails at most with foreign words. */
  const bounds = {
    own: { accepted: 158, coreExact: 120, leaked: 1 },
    edges: { accepted: 180, coreExact: 178, leaked: 0 },
    public: { accepted: 260, coreExact: 179, leaked: 1 },
  }
  for (const { name, items } of replyCorpora()) {
    const bound = bounds[name]
    test(`${name}: ${JSON.stringify(bound)} of ${items.length}, none emptied`, async () => {
      const tally = { accepted: 0, coreExact: 0, leaked: 0, emptied: 0 }
      for (const mail of items) {
        const got = squeeze(await extract(mail))
        const wanted = [mail.expected, ...(mail.alt ?? [])].map(squeeze)
        const accepted = wanted.includes(got)
        tally.accepted += Number(accepted)
        if (mail.tier === 'core' && got === wanted[0]) tally.coreExact++
        const known = new Set(wanted.flatMap(words))
        if (!accepted && words(got).some((word) => !known.has(word))) tally.leaked++
        if (got === '' && !wanted.includes('')) tally.emptied++
      }
      expect(items.length).toBeGreaterThan(150)
      expect(tally.accepted).toBeGreaterThanOrEqual(bound.accepted)
      expect(tally.coreExact).toBeGreaterThanOrEqual(bound.coreExact)
      expect(tally.leaked).toBeLessThanOrEqual(bound.leaked)
      expect(tally.emptied).toBe(0)
    })
  }
})
