/** Measures the reply text of mails that people wrote without having seen the extraction rules. */
import { describe, expect, test } from 'bun:test'
import { replyCorpora } from '../../../support/mail/corpora.ts'
import { expectRecorded } from '../../../support/recorded.ts'
import { scoreReplies } from './score.ts'

describe('the service finds the reply text of mails in public sets', () => {
  /**
   * Limits the results of each set of mails. At least `accepted` replies are accepted, and at least `coreExact` replies
   * to `core` mails (about which all readers agree) are exact. At most `leaked` replies contain words of other people.
   */
  const bounds = {
    own: { accepted: 158, coreExact: 120, leaked: 1 },
    edges: { accepted: 200, coreExact: 198, leaked: 0 },
    'sealed a': { accepted: 133, coreExact: 127, leaked: 3 },
    'sealed b': { accepted: 149, coreExact: 102, leaked: 0 },
    'sealed c': { accepted: 150, coreExact: 142, leaked: 0 },
    public: { accepted: 260, coreExact: 179, leaked: 1 },
  }
  for (const { name, items } of replyCorpora()) {
    const bound = bounds[name]
    test(`the reply texts of the ${items.length} ${name} mails satisfy ${JSON.stringify(bound)}, equal the recorded texts and are never wrongly empty`, async () => {
      const tally = await scoreReplies(items)
      expect(items.length).toBeGreaterThanOrEqual(135)
      expect(tally.accepted).toBeGreaterThanOrEqual(bound.accepted)
      expect(tally.coreExact).toBeGreaterThanOrEqual(bound.coreExact)
      expect(tally.leaked).toBeLessThanOrEqual(bound.leaked)
      expect(tally.emptied).toBe(0)
      // The public set of mails is not in the repository, so a fresh clone has no file with recorded texts for this
      // set.
      if (name !== 'public')
        expectRecorded(`replies/others/${name.replace(' ', '-')}.jsonl`, tally.others)
    })
  }
})
