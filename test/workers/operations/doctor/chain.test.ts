/** Tests the checks of the chain by the doctor (the service's self-check) against chain nodes with faults. */
import { afterEach, expect, test } from 'bun:test'
import { numberToHex, pad } from 'viem'
import { type Config, parseConfig } from '../../../../shared/config/config.ts'
import { USDC_NETWORKS } from '../../../../shared/till/usdc.ts'
import { examine } from '../../../../workers/operations/doctor/examine.ts'
import { freshDns } from '../../../../workers/operations/doctor/look.ts'
import { startNode } from '../../../support/till/fakeNode.ts'

const { chainId } = USDC_NETWORKS['base-sepolia']
const nodes: Disposable[] = []
afterEach(() => {
  for (const node of nodes.splice(0)) node[Symbol.dispose]()
})

type Node = { block?: 'none' | 'trouble'; result?: string }
const TROUBLE = { error: { code: -32000, message: 'the node sleeps' } }

/** Starts a chain node whose newest block is three seconds old. */
function node({ block, result = '0x' }: Node = {}): string {
  const started = startNode((method) => {
    if (method === 'eth_chainId') return numberToHex(chainId)
    if (method === 'eth_call') return result
    if (method !== 'eth_getBlockByNumber') return TROUBLE
    if (block === 'none') return null
    if (block === 'trouble') return TROUBLE
    const timestamp = numberToHex(Math.floor(Date.now() / 1000) - 3)
    return {
      number: '0x7',
      hash: pad('0x7'),
      parentHash: pad('0x6'),
      timestamp,
      baseFeePerGas: '0x1',
    }
  })
  nodes.push(started)
  return started.url
}

async function lookAt(rpcUrls: string[], change: Partial<Config> = {}) {
  const config = parseConfig({ ALLOW_PRIVATE_NETWORKS: 'true' })
  const chain = { ...config.chain, embeddedDevnet: false, rpcUrls }
  const own = { ...config, chain, ...change }
  return await examine('chain', {
    config: own,
    database: { pool: null, reason: 'away' },
    ...freshDns(own),
    ports: { smtp: 1, https: 1 },
  })
}

const foundOf = (findings: readonly { check: string; found: string }[], check: string) =>
  findings.filter((one) => one.check === check).map(({ found }) => found)

test('the doctor (self-check) reports a chain node that has no latest block or sends an error, and continues', async () => {
  for (const [block, found] of [
    ['none', 'no answer: there is no latest block'],
    ['trouble', 'no answer: eth_getBlockByNumber: the node sleeps'],
  ] as const) {
    expect(foundOf(await lookAt([node({ block })]), 'RPC')).toContain(found)
  }
})

test('the doctor (self-check) examines each of several chain nodes, and names the fault of each', async () => {
  const urls = [node(), node({ block: 'none' }), node({ block: 'trouble' })]
  const findings = await lookAt(urls)
  const each = urls.map((url) => foundOf(findings, `RPC ${new URL(url).host}`)[0])
  expect(each).toEqual([
    expect.stringMatching(/^block 7, \d+ ms a call$/),
    'no answer: there is no latest block',
    'no answer: eth_getBlockByNumber: the node sleeps',
  ])
  expect(foundOf(findings, 'RPC quorum')[0]).toStartWith('1 of 3 answer')
})

test('the doctor (self-check) judges the age of the newest block of a chain, but not of the devnet', async () => {
  const rpcUrls = [node()]
  const { chain } = parseConfig({})
  const devnet = { ...chain, embeddedDevnet: true, rpcUrls }
  expect(foundOf(await lookAt(rpcUrls), 'head')).toEqual([
    expect.stringMatching(/^block 7, \d+ s old$/),
  ])
  expect(foundOf(await lookAt(rpcUrls, { chain: devnet }), 'head')).toEqual([])
})

test('without a database, the doctor (self-check) examines the chain, but not the key for receipts', async () => {
  const findings = await lookAt([node()])
  expect(foundOf(findings, 'head')).toHaveLength(1)
  expect(foundOf(findings, 'receipt key')).toEqual([])
})
