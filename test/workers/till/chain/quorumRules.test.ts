/**
 * Tests the rules by which a quorum of two chain nodes decides on replies and rates the nodes. The nodes of this test
 * exist only in memory.
 */
import { describe, expect, test } from 'bun:test'
import { createQuorumRpc } from '../../../../workers/till/chain/quorum.ts'
import {
  type Rpc,
  type RpcAnswer,
  type RpcCall,
  RpcTrouble,
} from '../../../../workers/till/chain/rpc.ts'
import { waitFor } from '../../../support/waitFor.ts'

const ok = (result: unknown): RpcAnswer => ({ ok: true, result })
const error = (message: string): RpcAnswer => ({ ok: false, code: -1, message, data: null })
const block = (number: string, hash = '0xaa') => ok({ number, hash, parentHash: '0x1' })
const FAULT = error('header not found')
const UNSEEN = ok(null)
const BLOCK = 'eth_getBlockByNumber'
const NONCE = 'eth_getTransactionCount'
const SEND = 'eth_sendRawTransaction'

/**
 * Describes the reply of a chain node to each call of a request. `away` means that the node gives no reply.
 */
type Reply = 'away' | RpcAnswer | readonly RpcAnswer[] | Promise<RpcAnswer | 'away'>

/** Creates an RPC client for chain nodes that give the same replies to every request. */
function clientOf(replies: readonly (Reply | (() => Reply))[]) {
  const outcomes: Record<string, string> = {}
  const observed: string[] = []
  const requests: (readonly RpcCall[])[] = []
  const nodes = replies.map((reply, n) => {
    const batch: Rpc['batch'] = async (calls) => {
      requests.push(calls)
      const given = await (typeof reply === 'function' ? reply() : reply)
      if (given === 'away') throw new RpcTrouble('timed out')
      const one = (at: number) => (given as readonly RpcAnswer[])[at]!
      return calls.map((_, at) => (Array.isArray(given) ? one(at) : (given as RpcAnswer)))
    }
    return { name: `${n}`, rpc: { batch, call: () => Promise.reject(new Error('not used')) } }
  })
  const observe = (name: string, outcome: string) => {
    outcomes[name] = outcome
    observed.push(name)
  }
  return { ...createQuorumRpc({ nodes, quorum: 2, observe }), outcomes, observed, requests }
}

/** Returns the replies on which the quorum of chain nodes agreed, for one call of each method. */
const decided = (methods: readonly string[], replies: readonly Reply[]) =>
  clientOf(replies)
    .batch(methods.map((method) => ({ method, params: [] })))
    .catch((thrown: unknown) => (thrown instanceof RpcTrouble ? 'trouble' : thrown))

/** Returns the ratings of the chain nodes after one request. */
async function ratings(methods: readonly string[], replies: readonly Reply[]) {
  const client = clientOf(replies)
  await client.batch(methods.map((method) => ({ method, params: [] })))
  return Object.values(client.outcomes)
}

describe('a quorum rates each chain node by whether its reply agrees with the decided reply', () => {
  const [one, other] = [block('0x1'), block('0x1', '0xbb')]
  test.each<[name: string, rating: string, methods: string[], Reply[]]>([
    ['with the decided reply', 'agrees', [BLOCK], [one, one, one]],
    ['with another reply', 'differs', [BLOCK], [other, one, one]],
    ['that has not seen the block', 'behind', [BLOCK], [UNSEEN, one, one]],
    ['that alone has seen the block', 'behind', [BLOCK], [one, UNSEEN, UNSEEN]],
    ['with a fault', 'behind', [BLOCK], [FAULT, one, one]],
    ['without a reply', 'none', [BLOCK], ['away', one, one]],
    ['with another nonce', 'agrees', [NONCE], [ok('0x9'), ok('0x1'), ok('0x1')]],
    ['that refuses a transaction', 'agrees', [SEND], [error('no gas'), ok('0x1'), ok('0x1')]],
    [
      'that lags for one call, and then lies for another',
      'differs',
      [BLOCK, BLOCK],
      [
        [UNSEEN, other],
        [one, one],
        [one, one],
      ],
    ],
    [
      'that lies for one call, and then lags for another',
      'differs',
      [BLOCK, BLOCK],
      [
        [other, UNSEEN],
        [one, one],
        [one, one],
      ],
    ],
    [
      'that agrees on one call, and lags for another',
      'behind',
      [BLOCK, BLOCK],
      [
        [one, UNSEEN],
        [one, one],
        [one, one],
      ],
    ],
  ])('a chain node %s gets the rating %s', async (_, rating, methods, replies) => {
    expect((await ratings(methods, replies))[0]).toBe(rating)
  })
})

test('each chain node gets one rating for its answer, even if the node fails after the quorum has decided', async () => {
  const { promise, resolve } = Promise.withResolvers<'away'>()
  const client = clientOf([block('0x1'), block('0x1'), promise])
  await client.batch([{ method: BLOCK, params: [] }])
  resolve('away')
  await waitFor('the rating of the last node', async () => client.observed.includes('2'))
  expect(client.observed).toEqual(['0', '1', '2'])
})

describe('a reply of a chain node counts only if a quorum of chain nodes gives the same reply', () => {
  const [one, other] = [block('0x1'), block('0x1', '0xbb')]
  test.each<[name: string, method: string, Reply[], RpcAnswer | 'trouble']>([
    ['one node that has not seen the block is no quorum', BLOCK, [UNSEEN, 'away'], 'trouble'],
    ['one node with a fault is no quorum', BLOCK, [FAULT, 'away'], 'trouble'],
    ['one node with a block is no quorum', BLOCK, [one, 'away', 'away'], 'trouble'],
    ['two nodes with different blocks are no quorum', BLOCK, [one, other], 'trouble'],
    ['a fault and a block are no quorum', BLOCK, [FAULT, one], 'trouble'],
    ['a node that lags makes a block unseen', BLOCK, [one, UNSEEN], UNSEEN],
    ['two faults are the reply', BLOCK, [FAULT, FAULT], FAULT],
    ['a refusal by the only node that replies counts', SEND, [FAULT, 'away'], FAULT],
    ['a nonce of one node is no quorum', NONCE, [ok('0x5'), 'away'], 'trouble'],
    ['a nonce and a fault are no quorum', NONCE, [ok('0x5'), FAULT], 'trouble'],
    ['a nonce and a reply without a number are no quorum', NONCE, [ok('0x5'), ok(5)], 'trouble'],
    ['two faults are the reply for a nonce', NONCE, [FAULT, FAULT, ok('0x5')], FAULT],
    ['the second highest nonce is the reply', NONCE, [ok('0x7'), ok('0x5'), ok('0x6')], ok('0x6')],
    [
      'a nonce with too many digits is no number',
      NONCE,
      [ok(`0x${'1'.repeat(65)}`), ok('0x1')],
      'trouble',
    ],
  ])('in a quorum of two chain nodes, %s', async (_, method, replies, wanted) => {
    const answers = await decided([method], replies)
    expect(answers).toEqual(wanted === 'trouble' ? wanted : [wanted])
  })

  test('each JSON-RPC call in a batch needs a separate quorum of chain nodes', async () => {
    const replies = [
      [one, one],
      [one, other],
    ]
    expect(await decided([BLOCK, BLOCK], replies)).toBe('trouble')
    expect(await decided([BLOCK], replies)).toEqual([one])
  })

  test('an empty batch of JSON-RPC calls causes no request to a chain node', async () => {
    const client = clientOf([one, one])
    expect(await client.batch([])).toEqual([])
    expect(client.requests).toEqual([])
  })

  test('if two fast chain nodes are at fault, they do not decide a call before the other nodes have replied', async () => {
    const { promise, resolve } = Promise.withResolvers<RpcAnswer>()
    const answers = decided([BLOCK], [FAULT, FAULT, promise, promise])
    queueMicrotask(() => resolve(one))
    expect(await answers).toEqual([one])
  })

  test('the quorum for a nonce waits for a slower chain node if this node replied to the last request', async () => {
    const { promise, resolve } = Promise.withResolvers<RpcAnswer>()
    const answers = decided([NONCE], [ok('0x5'), ok('0x7'), promise])
    setTimeout(() => resolve(ok('0x7')), 1)
    expect(await answers).toEqual([ok('0x7')])
  })

  test('the quorum for a nonce does not wait for a slow chain node that gave no reply to the last request', async () => {
    const slow = Promise.withResolvers<RpcAnswer>()
    let reply: Promise<RpcAnswer> | 'away' = 'away'
    const client = clientOf([ok('0x5'), ok('0x7'), () => reply])
    const read = () => client.batch([{ method: NONCE, params: [] }])
    expect(await read()).toEqual([ok('0x5')])
    reply = slow.promise
    const second = read()
    setTimeout(() => slow.resolve(ok('0x9')), 1)
    expect(await second).toEqual([ok('0x5')])
    await waitFor('the late reply', async () => client.outcomes['2'] === 'agrees')
    expect(await read()).toEqual([ok('0x7')])
  })

  test('the quorum for a nonce decides without a chain node that never replies', async () => {
    const never = new Promise<RpcAnswer>(() => {})
    expect(await decided([NONCE], [ok('0x5'), ok('0x7'), never])).toEqual([ok('0x5')])
  })

  test('a transaction that one chain node refuses counts as sent if another chain node already knows the transaction', async () => {
    for (const message of ['already known', 'already imported', 'Known transaction']) {
      expect(await decided([SEND], [error('no gas'), error(message)])).toEqual([error(message)])
    }
    const refused = error('nonce too low')
    expect(await decided([SEND], [refused, error('no gas')])).toEqual([refused])
  })
})

describe('the newest block is the highest block that a quorum of chain nodes has', () => {
  test.each<[name: string, Reply[], asked: string | null]>([
    ['the second highest block', [block('0x9'), block('0x5'), block('0x7')], '0x7'],
    ['no block if one node alone has a block', [block('0x9'), UNSEEN, UNSEEN], null],
    ['no block if the other node has a fault', [block('0x9'), FAULT], null],
    ['no block if the other node replies with a text', [block('0x9'), ok('0x9')], null],
    ['no block if the other node names no number', [block('0x9'), ok({})], null],
  ])('the newest block is %s', async (_, replies, asked) => {
    const client = clientOf(replies)
    const found = client.call(BLOCK, ['finalized', false])
    if (asked === null) expect(await found).toBeNull()
    else await found.catch(() => {})
    const numbers = client.requests.map(([call]) => call!.params[0])
    expect(numbers.slice(replies.length)).toEqual(asked === null ? [] : replies.map(() => asked))
  })

  test('the newest block is unknown if only one chain node replies', async () => {
    const client = clientOf([block('0x9'), 'away'])
    await expect(client.call(BLOCK, ['latest', false])).rejects.toBeInstanceOf(RpcTrouble)
  })

  test('the quorum for the newest block waits for a slower chain node if this node replied to the last request', async () => {
    const { promise, resolve } = Promise.withResolvers<RpcAnswer>()
    const client = clientOf([block('0x5'), block('0x9'), promise])
    const found = client.call(BLOCK, ['latest', false]).catch(() => {})
    setTimeout(() => resolve(block('0x9')), 1)
    await found
    expect(client.requests.at(-1)![0]!.params[0]).toBe('0x9')
  })

  test('the service reads a block with a given number without a request for the newest block', async () => {
    const client = clientOf([block('0x5'), block('0x5')])
    expect(await client.call(BLOCK, ['0x5', false])).toMatchObject({ number: '0x5' })
    expect(client.requests).toHaveLength(2)
    const code = clientOf([ok('0x'), ok('0x')])
    expect(await code.call('eth_getCode', ['latest'])).toBe('0x')
    expect(code.requests).toHaveLength(2)
    const faulty = clientOf([FAULT, FAULT])
    await expect(faulty.call('eth_getCode', ['latest'])).rejects.toThrow(
      'eth_getCode: header not found',
    )
  })
})
