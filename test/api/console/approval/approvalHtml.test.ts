/** Tests how the approval page displays the texts of sellers and agents. */
import { expect, test } from 'bun:test'
import { paymentHtml } from '../../../../api/console/approval/approvalHtml.ts'

test('if a text of a payment contains a hidden character, the approval page shows the code number of this character', () => {
  const purchase = {
    ...{ host: 'shop.example', method: 'GET', path: '/a', why: 'a\u200bb' },
    terms: {
      ...{ amountUsdc: '1.5', payTo: '0x1', network: 'base', resource: null },
      description: 'ten <b> \u202eelpmaxe',
    },
  }
  const asked = {
    ...{ purchase, sha256: '0'.repeat(64), askedFor: 'new_payee' },
    expiresAt: '2026-01-08T09:30:00.000Z',
  }
  const html = paymentHtml({ asked: asked as never, note: undefined })
  expect(html).toContain('ten &lt;b&gt; ⟨U+202E⟩elpmaxe')
  expect(html).toContain('a⟨U+200B⟩b')
})
