import { expect, test } from 'bun:test'
import { pageSeals } from '../../shared/approvalLink.ts'
import { masterKey } from '../../shared/vault/envelope.ts'

const [old, next] = [1, 2].map((n) => masterKey(String(n), Buffer.alloc(32, n)))
const page = { approvalId: 'apr_1', sha256: 'ab', page: 1 }

test('the seal (signed token) of an approval page stays valid if another key becomes the first, but not if its own key is removed', () => {
  const seal = pageSeals([old!, next!]).seal(page)
  expect(pageSeals([next!, old!]).isSeal(page, seal)).toBe(true)
  expect(pageSeals([next!, old!]).isSeal({ ...page, page: 2 }, seal)).toBe(false)
  expect(pageSeals([next!, old!]).isSeal(page, undefined)).toBe(false)
  expect(pageSeals([next!]).isSeal(page, seal)).toBe(false)
})
