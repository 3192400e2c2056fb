/** Tests how the RPC client reads correct and faulty responses of a chain node. */
import { expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { serve } from 'bun'
import { findAuthorizationEvent, sendRaw } from '../../../../workers/till/chain/chain.ts'
import { refreshHead } from '../../../../workers/till/chain/chainView.ts'
import { createRpc, RpcTrouble } from '../../../../workers/till/chain/rpc.ts'
import { payer, SEPOLIA } from '../../../support/till/till.ts'
import { newHash } from '../../../support/till/tillRows.ts'

type Message = { id: number; method: string; params: any[] }

/** Starts a fake chain node that gives the responses of the test. */
function node(answer: (messages: Message[]) => Response | unknown) {
  const requests: Message[][] = []
  const server = serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = await request.json()
      const messages: Message[] = Array.isArray(body) ? body : [body]
      requests.push(messages)
      const made = await answer(messages)
      if (made instanceof Response) return made
      return Response.json(Array.isArray(body) ? made : (made as unknown[])[0])
    },
  })
  const url = `http://127.0.0.1:${server.port}`
  return { url, requests, rpc: createRpc({ url }), [Symbol.dispose]: () => void server.stop(true) }
}
const results = (messages: Message[], result: (message: Message) => unknown) =>
  messages.map((message) => ({ jsonrpc: '2.0', id: message.id, result: result(message) }))
const block = (number: number, hash: string) => ({
  number: `0x${number.toString(16)}`,
  hash,
  parentHash: '0x00',
  timestamp: '0x1',
})

test('a chain node’s response that is not JSON-RPC gives the error RpcTrouble', async () => {
  using elsewhere = node((messages) => results(messages, () => '0x1'))
  const good = [{ jsonrpc: '2.0', id: 0, result: '0x1' }]
  for (const answer of [
    () => Response.json(good[0], { status: 500 }),
    () => new Response('<html>'),
    () => Response.json({ jsonrpc: '2.0', result: '0x1' }),
    () => Response.json({ jsonrpc: '2.0', id: 7, result: '0x1' }),
    () => Response.redirect(elsewhere.url, 307),
  ]) {
    using faulty = node(answer)
    await expect(faulty.rpc.call('eth_chainId', [])).rejects.toBeInstanceOf(RpcTrouble)
    await expect(faulty.rpc.batch([{ method: 'eth_chainId', params: [] }])).rejects.toBeInstanceOf(
      RpcTrouble,
    )
  }
})

test.each<[name: string, reason: string, answer: (messages: Message[]) => Response | unknown]>([
  ['an HTTP error', 'HTTP 500', () => new Response('', { status: 500 })],
  ['a text that is not JSON', 'not reachable', () => new Response('<html>')],
  ['a value that is not JSON-RPC', 'the answer is not JSON-RPC', () => Response.json('0x1')],
  ['the answer to another call', 'eth_chainId: no answer', () => [{ id: 7, result: '0x1' }]],
  [
    'an error of its own',
    'eth_chainId: header not found',
    (messages) =>
      messages.map(({ id }) => ({ id, error: { code: 1, message: 'header not found' } })),
  ],
])('the error of a node that replies with %s is: %s', async (_, reason, answer) => {
  using faulty = node(answer)
  await expect(faulty.rpc.call('eth_chainId', [])).rejects.toThrow(new RpcTrouble(reason))
})

test('if a chain node does not reply, the error says whether the node was reached, and does not contain the URL of the node', async () => {
  using silent = node(() => new Promise(() => {}))
  const patient = createRpc({ url: `${silent.url}/secret`, timeoutMs: 50 })
  await expect(patient.call('eth_chainId', [])).rejects.toThrow(new RpcTrouble('timed out'))
  silent[Symbol.dispose]()
  const gone = createRpc({ url: `${silent.url}/secret` })
  await expect(gone.call('eth_chainId', [])).rejects.toThrow(new RpcTrouble('not reachable'))
})

test.each<[number, header: string, Record<string, string>]>([
  [30, 'Retry-After: 30', { 'retry-after': '30' }],
  [60, 'Retry-After: 60', { 'retry-after': '60' }],
  [60, 'Retry-After: 3600', { 'retry-after': '3600' }],
  [1, 'Retry-After: 0', { 'retry-after': '0' }],
  [1, 'Retry-After: soon', { 'retry-after': 'soon' }],
  [1, 'no Retry-After', {}],
])(
  'a node gets no request for %i s after a response with 429 and %s',
  async (seconds, _, headers) => {
    using busy = node(() => new Response('', { status: 429, headers }))
    // The second RPC call follows the first error directly. The pause after a 429 response has not ended, so the chain
    // node must get no second request.
    const messages: string[] = []
    await busy.rpc.call('eth_chainId', []).catch((first: Error) => {
      messages.push(first.message)
      return busy.rpc.batch([{ method: 'eth_chainId', params: [] }]).catch((second: Error) => {
        messages.push(second.message)
      })
    })
    expect(messages).toEqual(['HTTP 429', `HTTP 429: it wants to rest for ${seconds} s more`])
    expect(busy.requests).toHaveLength(1)
  },
)

test('a chain node gets no request before the date in its Retry-After header', async () => {
  // The header Retry-After holds a number of seconds or a date (RFC 9110 §10.2.3), so the client must also read a date.
  const headers = { 'retry-after': new Date(Date.now() + 40_000).toUTCString() }
  using busy = node(() => new Response('', { status: 429, headers }))
  const call = () => busy.rpc.call('eth_chainId', []).catch((error: Error) => error.message)
  await call()
  expect(await call()).toMatch(/^HTTP 429: it wants to rest for (?:3[5-9]|40) s more$/)
})

test('the RPC client splits a batch into requests of fifty calls, and each call gets its own answer', async () => {
  using fifty = node((messages) => results(messages, ({ params }) => params[0]).toReversed())
  const calls = Array.from({ length: 101 }, (_, n) => ({ method: 'echo', params: [n] }))
  const answers = await fifty.rpc.batch(calls)
  expect(answers.map((answer) => answer.ok && answer.result)).toEqual(calls.map((_, n) => n))
  expect(fifty.requests.map((messages) => messages.length)).toEqual([50, 50, 1])
})

test('the RPC client splits a batch of large calls into requests of at most one megabyte', async () => {
  using large = node((messages) => results(messages, ({ id }) => id))
  const calls = Array.from({ length: 5 }, () => ({ method: 'echo', params: ['f'.repeat(400_000)] }))
  expect(await large.rpc.batch(calls)).toHaveLength(5)
  expect(large.requests.map((messages) => messages.length)).toEqual([2, 2, 1])
  const sized = (chars: number) => ({ method: 'echo', params: ['f'.repeat(chars - 4)] })
  await large.rpc.batch([sized(500_000), sized(500_000)])
  await large.rpc.batch([sized(500_000), sized(500_001)])
  expect(large.requests.slice(3).map((messages) => messages.length)).toEqual([2, 1, 1])
})

test('a transaction counts as sent if the chain node responds that it already knows the transaction', async () => {
  const messages = ['already known', 'transaction already imported', 'known transaction', 'nonce']
  using knowing = node((sent) =>
    sent.map(({ id }) => ({ jsonrpc: '2.0', id, error: { code: 1, message: messages[id] } })),
  )
  const outcome = await sendRaw(knowing.rpc, ['0x1', '0x2', '0x3', '0x4'])
  expect(outcome).toEqual([null, null, null, 'nonce'])
})

test('the RPC client searches for events in ranges of two thousand blocks, and never before block 0', async () => {
  using empty = node((messages) => results(messages, () => []))
  const { requests, rpc } = empty
  const authorization = { asset: SEPOLIA.usdcAddress, payer: payer.address, nonce: newHash() }
  const search = (from: bigint, to: bigint) =>
    findAuthorizationEvent(rpc, authorization, { from, to })
  expect(await search(-5n, 2_000n)).toBeNull()
  expect(await search(2_000n, 2_000n)).toBeNull()
  const ranges = requests.map(([message]) => {
    const [{ fromBlock, toBlock }] = message!.params
    return [Number(fromBlock), Number(toBlock)]
  })
  expect(ranges).toEqual([
    [0, 1_999],
    [2_000, 2_000],
    [2_000, 2_000],
  ])
})

test('a lower block does not replace the stored newest block of the chain, but a different block of the same height does', async () => {
  let newest = block(7, '0x07')
  using lagging = node((messages) => results(messages, () => newest))
  const view: Parameters<typeof refreshHead>[0] = { rpc: lagging.rpc, head: null }
  await refreshHead(view)
  newest = block(6, '0x06')
  expect((await refreshHead(view)).hash).toBe('0x06')
  expect(view.head?.hash).toBe('0x07')
  newest = block(7, '0x77')
  await refreshHead(view)
  expect(view.head?.hash).toBe('0x77')
})

test('a response above 64 MiB ends the request early, whether it is plain or compressed', async () => {
  const MIB = 1024 * 1024
  const part = new Uint8Array(MIB).fill(0x20)
  let sent = 0
  const endless = () =>
    new Response(
      new ReadableStream({
        async pull(controller) {
          // The pause of this fake chain node gives the RPC client time to end the request.
          await Bun.sleep(0)
          controller.enqueue(part)
          if (++sent === 1_000) controller.close()
        },
      }),
    )
  const bomb = () =>
    new Response(gzipSync(Buffer.alloc(400 * MIB, 0x20)), {
      headers: { 'content-encoding': 'gzip' },
    })
  for (const answer of [endless, bomb]) {
    using large = node(answer)
    const error = await large.rpc.call('eth_chainId', []).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RpcTrouble)
    expect((error as Error).message).toEndWith('HTTP 413')
  }
  expect(sent).toBeWithin(64, 500)
})

test('a compressed response of a chain node is read', async () => {
  using zipped = node((messages) => {
    const [answer] = results(messages, () => '0x1')
    return new Response(gzipSync(JSON.stringify(answer)), {
      headers: { 'content-encoding': 'gzip' },
    })
  })
  expect(await zipped.rpc.call('eth_chainId', [])).toBe('0x1')
})
