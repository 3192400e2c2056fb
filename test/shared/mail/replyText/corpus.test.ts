/** Replies that were written without sight of the rules. */
import { describe, expect, test } from 'bun:test'
import { replyCorpora } from '../../../support/mail/corpora.ts'
import { scoreReplies } from './score.ts'

describe('corpus', () => {
  /** Mails at least exact or accepted, core mails at least exact, mails at most with foreign words. */
  const bounds = {
    own: { accepted: 158, coreExact: 120, leaked: 1 },
    edges: { accepted: 200, coreExact: 198, leaked: 0 },
    sealed: { accepted: 124, coreExact: 118, leaked: 11 },
    public: { accepted: 260, coreExact: 179, leaked: 1 },
  }
  for (const { name, items } of replyCorpora()) {
    const bound = bounds[name]
    test(`${name}: ${JSON.stringify(bound)} of ${items.length}, none emptied`, async () => {
      const tally = await scoreReplies(items)
      expect(items.length).toBeGreaterThanOrEqual(135)
      expect(tally.accepted).toBeGreaterThanOrEqual(bound.accepted)
      expect(tally.coreExact).toBeGreaterThanOrEqual(bound.coreExact)
      expect(tally.leaked).toBeLessThanOrEqual(bound.leaked)
      expect(tally.emptied).toBe(0)
    })
  }
})
