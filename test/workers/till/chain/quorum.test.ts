/**
 * Tests several RPC nodes of one chain. The tests check which answers the nodes must agree on, and what a single
 * dishonest node can cause.
 */
import { expect, test } from 'bun:test'
import { readBlock, readWallets, sendRaw } from '../../../../workers/till/chain/chain.ts'
import { createQuorumRpc, type NodeOutcome } from '../../../../workers/till/chain/quorum.ts'
import { createRpc, RpcTrouble } from '../../../../workers/till/chain/rpc.ts'
import { readReceipts } from '../../../../workers/till/chain/transactionReceipts.ts'
import { startNode } from '../../../support/till/fakeNode.ts'
import '../../../support/long.ts'

const HASH = `0x${'11'.repeat(32)}`
const OTHER = `0x${'22'.repeat(32)}`
const block = (number: number, hash = HASH) => ({
  number: `0x${number.toString(16)}`,
  hash,
  parentHash: HASH,
  timestamp: '0x5',
  // Some chain nodes add their own fields to a response, and these fields must not break the agreement between the
  // nodes. Therefore each test node adds a field.
  [`extra${number}`]: '0x1',
})
const receipt = (status: '0x0' | '0x1') => ({
  transactionHash: HASH,
  status,
  blockNumber: '0x5',
  blockHash: HASH,
  gasUsed: '0x6',
  logs: [],
  l1Fee: `0x${Math.floor(Math.random() * 1e6).toString(16)}`,
})

/**
 * Maps each RPC method to the answer of a chain node. 'silent' means that the node does not answer, and 429 means too
 * many requests.
 */
type Answers = Record<string, (params: any[]) => unknown> | 'silent' | 429

/** Starts one chain node for each set of answers, and returns an RPC client that asks all these nodes. */
async function together(all: Answers[], { quorum = 2, silentMs = 1_500 } = {}) {
  const servers = all.map((answers) =>
    startNode((method, params) => {
      if (answers === 'silent') return new Promise(() => {})
      if (answers === 429)
        return new Response('slow down', { status: 429, headers: { 'retry-after': '30' } })
      return answers[method]?.(params)
    }),
  )
  const outcomes: [string, NodeOutcome][] = []
  const rpc = createQuorumRpc({
    nodes: servers.map(({ url }, n) => ({
      name: 'abcd'[n]!,
      // The time limit is high, because an answering chain node must not count as silent only because the machine is
      // busy.
      rpc: createRpc({ url, timeoutMs: all[n] === 'silent' ? silentMs : 60_000 }),
    })),
    quorum,
    observe: (name, outcome) => void outcomes.push([name, outcome]),
  })
  return {
    rpc,
    servers,
    outcomes,
    [Symbol.dispose]() {
      for (const server of servers) server[Symbol.dispose]()
    },
  }
}

/** Returns the answers of a chain node that has the block with the given number as its newest block. */
const upTo = (head: number, hash = HASH): Answers => ({
  eth_getBlockByNumber: ([tag]) => {
    const number = tag === 'latest' ? head : tag === 'finalized' ? head - 10 : Number(tag)
    return number > head ? null : block(number, hash)
  },
})

test('the newest block is the highest block that a quorum of chain nodes has, even if one node is far ahead or far behind', async () => {
  const cases: [string, Answers[], bigint | null][] = [
    ['all alike', [upTo(100), upTo(100), upTo(100)], 100n],
    ['one ahead', [upTo(999_999), upTo(100), upTo(100)], 100n],
    ['one behind', [upTo(3), upTo(100), upTo(100)], 100n],
    ['each elsewhere', [upTo(98), upTo(100), upTo(99)], 99n],
    ['one on another chain', [upTo(100, OTHER), upTo(100), upTo(100)], 100n],
    ['one silent', ['silent', upTo(100), upTo(99)], 99n],
    ['one that rests', [429, upTo(100), upTo(100)], 100n],
  ]
  for (const [name, answers, head] of cases) {
    using nodes = await together(answers)
    const found = await readBlock(nodes.rpc, 'latest')
    expect([name, found?.number, found?.hash]).toEqual([name, head!, HASH as never])
    expect([name, (await readBlock(nodes.rpc, 'finalized'))?.number]).toEqual([name, head! - 10n])
  }
})

test('a read from the chain without a quorum of chain nodes throws the error RpcTrouble, which names the nodes', async () => {
  for (const answers of [
    ['silent', 429, upTo(100)],
    [upTo(100, OTHER), 'silent', upTo(100)],
    [upTo(100, OTHER), upTo(100), upTo(100, `0x${'33'.repeat(32)}`)],
  ] satisfies Answers[][]) {
    using nodes = await together(answers)
    const failed = readBlock(nodes.rpc, 'latest')
    await expect(failed).rejects.toBeInstanceOf(RpcTrouble)
    await expect(failed).rejects.toThrow(/fewer than 2 of 3 RPCs agree \(.*[ab]: .+\)$/)
  }
})

test('a transaction receipt is accepted only if a quorum of chain nodes returns the same receipt', async () => {
  const holds = (status: '0x0' | '0x1'): Answers => ({
    eth_getTransactionReceipt: () => receipt(status),
  })
  const unseen: Answers = { eth_getTransactionReceipt: () => null }
  const cases: [string, Answers[], bigint | null | 'trouble'][] = [
    ['all alike', [holds('0x1'), holds('0x1'), holds('0x1')], 1n],
    ['one lies', [holds('0x0'), holds('0x1'), holds('0x1')], 1n],
    ['one lags', [unseen, holds('0x1'), holds('0x1')], 1n],
    ['one invents it', [holds('0x1'), unseen, unseen], null],
    ['one has it, one lags, one is silent', [holds('0x1'), unseen, 'silent'], null],
    ['one has it, and the others are away', [holds('0x1'), 429, 'silent'], 'trouble'],
    ['two differ, and one is silent', [holds('0x1'), holds('0x0'), 'silent'], 'trouble'],
  ]
  for (const [name, answers, status] of cases) {
    using nodes = await together(answers)
    const found = await readReceipts(nodes.rpc, [HASH as never]).then(
      ([one]) => one?.status ?? null,
      (error: unknown) => (error instanceof RpcTrouble ? 'trouble' : error),
    )
    expect([name, found]).toEqual([name, status])
  }
})

test('an answer about the chain counts only if two chain nodes give the same answer', async () => {
  using both = await together([upTo(100), upTo(90)])
  expect((await readBlock(both.rpc, 'latest'))?.number).toBe(90n)
  using one = await together([upTo(100), 429])
  await expect(readBlock(one.rpc, 'latest')).rejects.toBeInstanceOf(RpcTrouble)
})

test('a single chain node with false answers does not change the nonce and the balance that the service reads for a wallet', async () => {
  const wallet = (nonce: string, balance: string): Answers => ({
    eth_getTransactionCount: () => nonce,
    eth_getBalance: () => balance,
  })
  const address = `0x${'44'.repeat(20)}` as const
  for (const liar of [wallet('0xffff', '0x0'), wallet('0x0', '0xffffffff')]) {
    using nodes = await together([liar, wallet('0x7', '0x9'), wallet('0x7', '0x9')])
    expect(await readWallets(nodes.rpc, [address])).toEqual([
      { used: 7n, pooled: 7n, balanceWei: 9n },
    ])
  }
})

test('a transaction counts as sent if one chain node accepts it, and as refused only if a quorum refuses it', async () => {
  const takes: Answers = { eth_sendRawTransaction: () => HASH }
  const refuses: Answers = {
    eth_sendRawTransaction: () => ({ error: { code: -32000, message: 'nonce too low' } }),
  }
  using taken = await together([refuses, 'silent', takes])
  expect(await sendRaw(taken.rpc, ['0x01'])).toEqual([null])
  using refused = await together([refuses, 'silent', refuses])
  expect(await sendRaw(refused.rpc, ['0x01'])).toEqual(['nonce too low'])
})

test('a chain node that does not respond does not delay the answer of the other nodes', async () => {
  using nodes = await together(['silent', upTo(100), upTo(100)], { silentMs: 60_000 })
  expect((await readBlock(nodes.rpc, 'latest'))?.number).toBe(100n)
})

test('the service records for each chain node whether its answer agrees with the other nodes, even if the answer comes late', async () => {
  const { promise: late, resolve: answerNow } = Promise.withResolvers<void>()
  using nodes = await together([
    upTo(100),
    upTo(100),
    {
      eth_getBlockByNumber: async () => {
        await late
        return block(50, OTHER)
      },
    },
  ])
  await readBlock(nodes.rpc, 50n)
  answerNow()
  while (!nodes.outcomes.some(([name]) => name === 'c')) await Bun.sleep(5)
  expect(nodes.outcomes).toContainEqual(['c', 'differs'])
  expect(nodes.outcomes).toContainEqual(['a', 'agrees'])
})

test('a chain node that responds with 429 gets no more requests until the pause that its response demands has ended', async () => {
  using nodes = await together([429, upTo(100), upTo(100)])
  for (let look = 0; look < 5; look++) await readBlock(nodes.rpc, 'latest')
  expect(nodes.servers[0]!.requests).toBe(1)
  expect(nodes.servers[1]!.requests).toBeGreaterThan(4)
})

test('two chain nodes outvote one node that lies about the chain id, logs, contract code or a call, but two nodes with the same lie win', async () => {
  const says = (result: unknown): Answers =>
    Object.fromEntries(
      ['eth_chainId', 'eth_getLogs', 'eth_getCode', 'eth_call'].map((method) => [
        method,
        () => (method === 'eth_getLogs' ? result : JSON.stringify(result)),
      ]),
    )
  const log = {
    address: HASH,
    topics: [HASH],
    data: '0x',
    transactionHash: HASH,
    blockNumber: '0x1',
    logIndex: '0x0',
  }
  const [honest, liar] = [says([{ ...log, removed: false }]), says([])]
  for (const method of ['eth_chainId', 'eth_getLogs', 'eth_getCode', 'eth_call']) {
    using one = await together([liar, honest, honest])
    const answer = JSON.stringify(await one.rpc.call(method, []))
    expect([method, answer.includes(HASH)]).toEqual([method, true])
    // If enough chain nodes for the quorum give the same wrong answer, this answer wins. Therefore an operator must
    // choose nodes of different owners.
    using two = await together([liar, honest, liar])
    const wrong = JSON.stringify(await two.rpc.call(method, []))
    expect([method, wrong.includes(HASH)]).toEqual([method, false])
  }
})

test('a revert counts as an answer of the chain, and any other error counts as a fault of the chain node', async () => {
  const reverts: Answers = {
    eth_call: () => ({ error: { code: 3, message: 'execution reverted: x', data: '0x08' } }),
  }
  const faulty: Answers = {
    eth_call: () => ({ error: { code: -32000, message: 'header not found' } }),
  }
  const passes: Answers = { eth_call: () => '0x' }
  const ask = async (answers: Answers[]) => {
    using nodes = await together(answers)
    const [answer] = await nodes.rpc.batch([{ method: 'eth_call', params: [] }])
    return answer!.ok ? 'passes' : answer!.code
  }
  expect(await ask([reverts, passes, passes])).toBe('passes')
  expect(await ask([reverts, reverts, passes])).toBe(3)
  expect(await ask([faulty, passes, passes])).toBe('passes')
  expect(await ask([faulty, faulty, passes])).toBe(-32000)
  await expect(ask([faulty, reverts, passes])).rejects.toBeInstanceOf(RpcTrouble)
})
