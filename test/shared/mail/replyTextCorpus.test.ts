/**
 * Reads public test suites (agentextract, talon, Discourse, crisp, EdgeTier, …) from a sibling folder
 * of the project; skipped without them.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import PostalMime from 'postal-mime'
import { replyText, replyTextFromHtml } from '../../../shared/mail/replyText.ts'

const corpus = resolve(import.meta.dir, '../../../../shared/fixtures/replies/development.jsonl')
const absent = !existsSync(corpus)

type Case = {
  input_kind: 'text' | 'eml'
  input: string
  expected: string
  alt?: string[]
  tier: string
}

describe(absent ? `corpus (skipped: ${corpus} is absent)` : 'corpus', () => {
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

  const extract = async (mail: Case) => {
    if (mail.input_kind === 'text') return replyText(mail.input)
    const { text, html } = await PostalMime.parse(mail.input)
    return text?.trim() ? replyText(text) : replyTextFromHtml(html ?? '')
  }

  test.skipIf(absent)(
    'exact or accepted 95 %, core exact 95 %, leaks 5 %, none emptied',
    async () => {
      const cases: Case[] = readFileSync(corpus, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
      const tally = { accepted: 0, core: 0, coreExact: 0, leaked: 0, emptied: 0 }
      for (const mail of cases) {
        const got = squeeze(await extract(mail))
        const wanted = [mail.expected, ...(mail.alt ?? [])].map(squeeze)
        const accepted = wanted.includes(got)
        tally.accepted += Number(accepted)
        if (mail.tier === 'core') tally.core++
        if (mail.tier === 'core' && got === wanted[0]) tally.coreExact++
        const known = new Set(wanted.flatMap(words))
        if (!accepted && words(got).some((word) => !known.has(word))) tally.leaked++
        if (got === '' && !wanted.includes('')) tally.emptied++
      }
      expect(cases.length).toBeGreaterThan(200)
      expect(tally.accepted / cases.length).toBeGreaterThanOrEqual(0.95)
      expect(tally.coreExact / tally.core).toBeGreaterThanOrEqual(0.95)
      expect(tally.leaked / cases.length).toBeLessThanOrEqual(0.05)
      expect(tally.emptied).toBe(0)
    },
  )
})
