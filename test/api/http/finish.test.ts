import { expect, test } from 'bun:test'
import { describe } from '../../../api/http/finish.ts'

test.each([
  [200, []],
  [404, []],
  [499, []],
  [500, ['500']],
  [503, ['503']],
] as const)('an answer %d fails its span: %p', (status, wanted) => {
  const failed: string[] = []
  const span = { rename() {}, set() {}, fail: (type: string) => failed.push(type) }
  const state = { route: null, requestId: 'req_1' }
  describe(span, new Request('http://x/'), new Response(null, { status }), state as never)
  expect(failed).toEqual([...wanted])
})
