import { expect, test } from 'bun:test'
import { describe, sendLargeAtOnce } from '../../../api/http/finish.ts'

test.each([
  [200, []],
  [404, []],
  [499, []],
  [500, ['500']],
  [503, ['503']],
] as const)(
  'a trace span with the response status %d is marked with these failures: %p',
  (status, wanted) => {
    const failed: string[] = []
    const span = { rename() {}, set() {}, fail: (type: string) => failed.push(type) }
    const state = { route: null, requestId: 'req_1' }
    describe(span, new Request('http://x/'), new Response(null, { status }), state as never)
    expect(failed).toEqual([...wanted])
  },
)

test('a large JSON response arrives complete, with its status and headers, for letters of any alphabet', async () => {
  const bodies = [{ text: 'a' }, { text: '語'.repeat(4_500) }, { text: 'x'.repeat(3_000_000) }]
  using server = Bun.serve({
    port: 0,
    async fetch(request) {
      const body = bodies[Number(new URL(request.url).pathname.slice(1))]
      await Bun.sleep(1)
      return sendLargeAtOnce(Response.json(body, { status: 201, headers: { 'x-request-id': 'r' } }))
    },
  })
  for (const [n, body] of bodies.entries()) {
    const response = await fetch(new URL(String(n), server.url))
    expect([response.status, response.headers.get('x-request-id')]).toEqual([201, 'r'])
    expect(response.headers.get('content-type')).toStartWith('application/json')
    expect(await response.json()).toEqual(body)
  }
})

test('a large response that is not JSON is passed on unchanged to the client', async () => {
  const lines = new Response('{}\n', { headers: { 'content-type': 'application/jsonl' } })
  expect(await sendLargeAtOnce(lines)).toBe(lines)
})

test('only a JSON response of more than 256 KB counts against the memory limit, until the client has read it', async () => {
  const counted: number[] = []
  for (const size of [256 * 1024, 256 * 1024 + 1]) {
    const response = Response.json('x'.repeat(size - 2))
    await sendLargeAtOnce(response, async (bytes) => {
      counted.push(bytes.length)
      return new Uint8Array(bytes)
    })
  }
  expect(counted).toEqual([256 * 1024 + 1])
})
