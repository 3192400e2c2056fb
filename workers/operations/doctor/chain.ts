import { type Address, decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import {
  judgeFees,
  judgeGasWallet,
  judgeHead,
  judgeNodes,
  judgeOldState,
  judgeReceiptKey,
  judgeRpc,
  judgeToken,
  type NodeFacts,
  rpcAway,
  type TokenFacts,
} from '../../../shared/doctor/chainFindings.ts'
import type { Finding } from '../../../shared/doctor/finding.ts'
import { judgeClock } from '../../../shared/doctor/settingsFindings.ts'
import { didWeb, receiptKey } from '../../../shared/till/receiptKey.ts'
import { type UsdcNetwork, usdcNetworkOfChainId } from '../../../shared/till/usdc.ts'
import { isPublishedKey, receiptSeeds } from '../../../sql/till/payments/receiptKeys.ts'
import {
  type Block,
  hex,
  quantity,
  read,
  readBlock,
  readTip,
  readWallets,
  tagOf,
} from '../../till/chain/chain.ts'
import { chainNodes, chainRpc } from '../../till/chain/chainRpc.ts'
import { type Rpc, RpcTrouble } from '../../till/chain/rpc.ts'
import { type DoctorTools, inTime, LOOK_MS, takeLooks } from './look.ts'

const TOKEN_ABI = parseAbi([
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function decimals() view returns (uint8)',
])
/**
 * Sets how many old blocks a chain node must keep, because the service looks up payments in old blocks until they are
 * final. Base makes a block every two seconds, and a block is final after some 20 minutes.
 */
const OLD_BLOCKS = 600
/**
 * Holds the gas that the settlement of one payment to a new recipient takes. A measured settlement took 102,856 gas,
 * and the constant is rounded up.
 */
const GAS_PER_PAYMENT = 105_000n

/** Examines the chain over the same connections that the payment workers use. */
export async function lookAtChain(tools: DoctorTools): Promise<Finding[]> {
  const nodes = await lookAtNodes(tools.config.chain)
  return [...nodes, ...(await lookAtOneChain(tools))]
}

/** Examines each chain node separately if the service uses several chain nodes. */
async function lookAtNodes(chain: DoctorTools['config']['chain']): Promise<Finding[]> {
  const nodes = chainNodes(chain, LOOK_MS)
  if (nodes.length === 1) return []
  const facts = await Promise.all(
    nodes.map(async ({ name, rpc }): Promise<NodeFacts> => {
      const startedMs = performance.now()
      try {
        const chainId = Number(read(quantity, await rpc.call('eth_chainId', []), 'eth_chainId'))
        const latencyMs = performance.now() - startedMs
        const head = await readBlock(rpc, 'latest')
        if (head === null) return { name, failure: 'there is no latest block' }
        return { name, chainId, head: head.number, latencyMs }
      } catch (error) {
        if (!(error instanceof RpcTrouble)) throw error
        return { name, failure: error.message }
      }
    }),
  )
  return judgeNodes(facts, chain.rpcQuorum)
}

async function lookAtOneChain(tools: DoctorTools): Promise<Finding[]> {
  const { config } = tools
  const rpc = chainRpc(config.chain, { timeoutMs: LOOK_MS })
  const startedMs = performance.now()
  try {
    const chainId = Number(read(quantity, await rpc.call('eth_chainId', []), 'eth_chainId'))
    const latencyMs = performance.now() - startedMs
    const first = judgeRpc({ chainId, latencyMs })
    const network = usdcNetworkOfChainId(chainId)
    return [
      ...first,
      ...(network === undefined ? [] : await lookFurther(tools, rpc, network)),
      ...(await receiptKeys(tools)),
    ]
  } catch (error) {
    if (!(error instanceof RpcTrouble)) throw error
    return [rpcAway(error.message), ...(await receiptKeys(tools))]
  }
}

async function lookFurther(tools: DoctorTools, rpc: Rpc, network: UsdcNetwork): Promise<Finding[]> {
  const head = await readBlock(rpc, 'latest')
  if (head === null) return [rpcAway('there is no latest block')]
  return takeLooks('chain', [
    { check: 'head', run: async () => judgeHeadOf(tools, head) },
    { check: 'USDC', run: async () => judgeToken(network, await readToken(rpc, network)) },
    { check: 'old state', run: () => oldState(rpc, network, head) },
    { check: 'fees', run: () => feesAndWallets(tools, rpc, head) },
  ])
}

/**
 * Judges the age of the newest block (head block) of the chain. The devnet makes a block only for a transaction, so the
 * age of its head block says nothing.
 */
function judgeHeadOf({ config }: DoctorTools, head: Block): Finding[] {
  if (config.chain.embeddedDevnet) return []
  const aheadMs = Date.now() - Number(head.timestamp) * 1000
  const seen = judgeHead({ number: head.number, ageS: Math.max(0, Math.round(aheadMs / 1000)) })
  // A head block with a time in the future proves that the clock of this machine is slow. A head block with a past time
  // proves nothing, because it may simply be old.
  return aheadMs < 0 ? [seen, { ...judgeClock('the head', aheadMs), area: 'chain' }] : [seen]
}

async function readToken(rpc: Rpc, { usdcAddress: to }: UsdcNetwork): Promise<TokenFacts> {
  const names = ['name', 'version', 'decimals'] as const
  const answers = await rpc.batch(
    names.map((functionName) => ({
      method: 'eth_call',
      params: [{ to, data: encodeFunctionData({ abi: TOKEN_ABI, functionName }) }, 'latest'],
    })),
  )
  const [name, version, decimals] = names.map((functionName, n) => {
    const answer = answers[n]
    try {
      const data = hex.parse(answer?.ok ? answer.result : null)
      return decodeFunctionResult({ abi: TOKEN_ABI, functionName, data })
    } catch {
      return null
    }
  })
  return {
    name: typeof name === 'string' ? name : null,
    version: typeof version === 'string' ? version : null,
    decimals: typeof decimals === 'number' ? decimals : null,
  }
}

async function oldState(rpc: Rpc, { usdcAddress: to }: UsdcNetwork, head: Block): Promise<Finding> {
  const back = head.number < BigInt(OLD_BLOCKS) ? Number(head.number) : OLD_BLOCKS
  const data = encodeFunctionData({ abi: TOKEN_ABI, functionName: 'decimals' })
  const [answer] = await rpc.batch([
    { method: 'eth_call', params: [{ to, data }, tagOf(head.number - BigInt(back))] },
  ])
  return judgeOldState(back, answer?.ok === true)
}

async function feesAndWallets({ config }: DoctorTools, rpc: Rpc, head: Block): Promise<Finding[]> {
  const tipWei = await readTip(rpc)
  const baseFeeWei = head.baseFeePerGas ?? 0n
  const addresses = config.chain.settlementKeys.map(
    (key): Address => privateKeyToAccount(key).address,
  )
  const wallets = await readWallets(rpc, addresses)
  const perPaymentWei = (baseFeeWei + tipWei) * GAS_PER_PAYMENT
  return [
    judgeFees({ baseFeeWei, tipWei }),
    ...wallets.map(({ balanceWei }, n) =>
      judgeGasWallet({ address: addresses[n]!, balanceWei }, perPaymentWei),
    ),
  ]
}

const receiptKeys = ({ config, database }: DoctorTools): Promise<Finding[]> =>
  takeLooks('chain', [
    {
      check: 'receipt key',
      run: async () => {
        // In production, another check of the doctor (the self-check) already reports a missing key among the findings
        // about the settings.
        if (config.production && config.receiptSeeds === undefined) return []
        const seed = receiptSeeds(config)[0]?.seed
        if (database.pool === null || seed === undefined) return []
        const { kid } = receiptKey({ seed, did: didWeb(config.http.baseUrl) })
        return judgeReceiptKey(await inTime(isPublishedKey(database.pool, kid)))
      },
    },
  ])
