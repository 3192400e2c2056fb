import { expect, test } from 'bun:test'
import {
  judgeFees,
  judgeGasWallet,
  judgeHead,
  judgeNodes,
  judgeOldState,
  judgeReceiptKey,
  judgeRpc,
  judgeToken,
  rpcAway,
} from '../../../shared/doctor/chainFindings.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'

const { base } = USDC_NETWORKS

test('the doctor command reports a slow RPC or a test network as a warning, and an unknown chain or a silent RPC as broken', () => {
  const verdicts = (chainId: number, latencyMs: number) =>
    judgeRpc({ chainId, latencyMs }).map(({ verdict }) => verdict)
  expect(verdicts(8453, 100)).toEqual(['ok', 'ok'])
  expect(verdicts(84532, 100)).toEqual(['ok', 'warning'])
  expect(verdicts(1, 1_500)).toEqual(['warning', 'broken'])
  expect(rpcAway('timed out')).toMatchObject({ verdict: 'broken', found: 'no answer: timed out' })
})

test.each([
  [4, 'ok'],
  [60, 'warning'],
  [900, 'broken'],
] as const)(
  'the command `bun run doctor` judges a newest block that is %p seconds old as %s',
  (ageS, verdict) => {
    expect(judgeHead({ number: 7n, ageS })).toMatchObject({
      verdict,
      found: `block 7, ${ageS} s old`,
    })
  },
)

test('the doctor command reports a token contract as broken if its name, version or number of decimals is not that of USDC', () => {
  const token = { name: 'USD Coin', version: '2', decimals: 6 }
  expect(judgeToken(base, token).verdict).toBe('ok')
  for (const change of [{ name: 'USDC' }, { version: '1' }, { decimals: 18 }, { name: null }]) {
    expect(judgeToken(base, { ...token, ...change })).toMatchObject({
      verdict: 'broken',
      found: `the contract at ${base.usdcAddress} is not "USD Coin", version 2, 6 decimals`,
      fix: expect.stringMatching(/^RPC_URL=/),
    })
  }
})

test('the doctor command judges a gas wallet by the number of payments that its ether can pay for', () => {
  const address = `0x${'ab'.repeat(20)}`
  const judged = (balanceWei: bigint) => judgeGasWallet({ address, balanceWei }, 1_000n)
  expect(judged(5_000_000n)).toMatchObject({ verdict: 'ok', check: 'gas wallet 0xabababab' })
  expect(judged(999_000n)).toMatchObject({
    verdict: 'warning',
    found: expect.stringContaining('enough for 999 payments'),
  })
  expect(judged(999n)).toMatchObject({
    verdict: 'broken',
    fix: expect.stringContaining(`send ether to ${address}`),
  })
  // A network fee of 0 for a payment must not cause a division by zero.
  expect(judgeGasWallet({ address, balanceWei: 5_000n }, 0n).verdict).toBe('ok')
})

test('the doctor command reports an RPC node without old chain state as a warning, and a receipt key that does not belong to the service as broken', () => {
  expect(judgeOldState(600, true).verdict).toBe('ok')
  expect(judgeOldState(600, false)).toMatchObject({
    verdict: 'warning',
    found: 'the node knows no state 600 blocks back',
  })
  expect(judgeFees({ baseFeeWei: 2_000_000n, tipWei: 1_000n }).found).toBe(
    '0.002 gwei a gas, tip 0.000001',
  )
  expect(judgeReceiptKey(true).verdict).toBe('ok')
  expect(judgeReceiptKey(false).verdict).toBe('broken')
})

test('the doctor command reports an RPC node that is behind or silent as a warning, and a node on another chain or too few responding nodes as broken', () => {
  const node = (name: string, head: bigint, chainId = 8453) => ({
    name,
    head,
    chainId,
    latencyMs: 20,
  })
  const verdicts = (nodes: Parameters<typeof judgeNodes>[0]) =>
    judgeNodes(nodes, 2).map(({ verdict }) => verdict)
  const [one, two] = [node('a', 100n), node('b', 99n)]
  expect(verdicts([one, two, node('c', 98n)])).toEqual(['ok', 'ok', 'ok', 'ok'])
  expect(verdicts([one, two, node('c', 5n)])).toEqual(['ok', 'ok', 'ok', 'warning'])
  expect(verdicts([one, two, node('c', 5n, 1)])).toEqual(['ok', 'ok', 'ok', 'broken'])
  const away = { name: 'c', failure: 'timed out' }
  expect(verdicts([one, two, away])).toEqual(['warning', 'ok', 'ok', 'warning'])
  expect(verdicts([one, away, { ...away, name: 'd' }])).toEqual([
    'broken',
    'ok',
    'warning',
    'warning',
  ])
  expect(judgeNodes([one, away], 2)[0]).toMatchObject({ found: '1 of 2 answer, 2 must agree' })
})

test('if a value is exactly at a limit of a chain check, the doctor command gives the better verdict', () => {
  const ofHead = (ageS: number) => judgeHead({ number: 7n, ageS }).verdict
  expect([30, 31, 300, 301].map(ofHead)).toEqual(['ok', 'warning', 'warning', 'broken'])
  const ofRpc = (latencyMs: number) => judgeRpc({ chainId: 8453, latencyMs })[0]!.verdict
  expect([1_000, 1_001].map(ofRpc)).toEqual(['ok', 'warning'])
  const ofLag = (behind: bigint) =>
    judgeNodes(
      [
        { name: 'a', chainId: 8453, head: 100n - behind, latencyMs: 1 },
        { name: 'b', chainId: 8453, head: 100n, latencyMs: 1 },
      ],
      1,
    )[1]!.verdict
  expect([ofLag(10n), ofLag(11n)]).toEqual(['ok', 'warning'])
})

test('the doctor command warns if a gas wallet has ether for fewer than a thousand payments, and shows the number of payments up to a million', () => {
  const of = (payments: bigint) =>
    judgeGasWallet({ address: '0xabcdef', balanceWei: payments * 7n }, 7n)
  expect([0n, 1n, 999n, 1_000n].map((payments) => of(payments).verdict)).toEqual([
    'broken',
    'warning',
    'warning',
    'ok',
  ])
  expect(of(1_000_000n).found).toEndWith('enough for 1000000 payments')
  expect(of(1_000_001n).found).toEndWith('enough for more than a million payments')
})
