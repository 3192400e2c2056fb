import { formatEther, formatGwei } from 'viem'
import { type UsdcNetwork, usdcNetworkOfChainId } from '../till/usdc.ts'
import { type Finding, findingsIn } from './finding.ts'

const { ok, warning, broken } = findingsIn('chain')

const LATENCY_WARNING_MS = 1_000
const HEAD_WARNING_S = 30
const HEAD_BROKEN_S = 300
const USDC_DECIMALS = 6
const RPC_FIX = 'RPC_URL=https://…   # another node of the same chain'

/**
 * Reports that the RPC node does not respond. @param failure is one line without the URL of the RPC node, because the
 * URL can contain a key.
 */
export const rpcAway = (failure: string): Finding => broken('RPC', `no answer: ${failure}`, RPC_FIX)

/** Makes the findings of the doctor (the service's self-check) about the first responses of an RPC node. */
export function judgeRpc({
  chainId,
  latencyMs,
}: {
  chainId: number
  latencyMs: number
}): Finding[] {
  const network = usdcNetworkOfChainId(chainId)
  const took = `${Math.round(latencyMs)} ms a call`
  return [
    latencyMs > LATENCY_WARNING_MS ? warning('RPC', took, RPC_FIX) : ok('RPC', took),
    network === undefined
      ? broken(
          'chain id',
          `${chainId} is neither base nor base-sepolia`,
          'RPC_URL=https://mainnet.base.org',
        )
      : network.network === 'base'
        ? ok('chain id', `${chainId}, ${network.network}`)
        : warning(
            'chain id',
            `${chainId}, ${network.network}: its USDC has no worth`,
            'RPC_URL=https://mainnet.base.org   # when you go live',
          ),
  ]
}

/**
 * Describes one of several RPC nodes by the node's chain and newest block. The field `failure` tells why the RPC node
 * gave no response.
 */
export type NodeFacts =
  | { name: string; chainId: number; head: bigint; latencyMs: number }
  | { name: string; failure: string }

/** Sets the number of blocks that a chain node may lag behind the newest block without a warning. */
const LAG_WARNING_BLOCKS = 10n

/** Makes the findings of the doctor (the service's self-check) about a comparison of several chain nodes. */
export function judgeNodes(nodes: readonly NodeFacts[], quorum: number): Finding[] {
  const answering = nodes.filter((node) => 'head' in node)
  const heights = answering.map(({ head }) => head).toSorted((a, b) => (a < b ? 1 : -1))
  const [newest = 0n] = heights
  const chain = answering[0]?.chainId
  const each = nodes.map((node) => {
    const check = `RPC ${node.name}`
    if ('failure' in node) return warning(check, `no answer: ${node.failure}`, RPC_FIX)
    if (node.chainId !== chain) {
      return broken(check, `chain ${node.chainId}, and not ${chain}`, RPC_FIX)
    }
    const behind = newest - node.head
    const found = `block ${node.head}, ${Math.round(node.latencyMs)} ms a call`
    return behind > LAG_WARNING_BLOCKS
      ? warning(check, `${found}, ${behind} blocks behind`, RPC_FIX)
      : ok(check, found)
  })
  const count = `${answering.length} of ${nodes.length} answer, ${quorum} must agree`
  const spare = answering.length > quorum
  return [
    answering.length < quorum
      ? broken('RPC quorum', count, RPC_FIX)
      : spare
        ? ok('RPC quorum', count)
        : warning('RPC quorum', `${count}: none may fail`, 'RPC_URL=https://…,https://…,https://…'),
    ...each,
  ]
}

/**
 * Judges whether the newest block of the chain is recent enough. An old block means that the node lags or that the
 * chain stands still.
 */
export function judgeHead({ number, ageS }: { number: bigint; ageS: number }): Finding {
  const found = `block ${number}, ${ageS} s old`
  if (ageS > HEAD_BROKEN_S) return broken('head', found, RPC_FIX)
  return ageS > HEAD_WARNING_S ? warning('head', found, RPC_FIX) : ok('head', found)
}

/**
 * Holds the name, version and decimals that the USDC contract returns. A value is null if the USDC contract has no
 * function for the value.
 */
export type TokenFacts = { name: string | null; version: string | null; decimals: number | null }

export function judgeToken(network: UsdcNetwork, token: TokenFacts): Finding {
  const fits =
    token.name === network.eip712Name &&
    token.version === network.eip712Version &&
    token.decimals === USDC_DECIMALS
  if (fits) return ok('USDC', `${token.name}, version ${token.version}, ${token.decimals} decimals`)
  const asked = `"${network.eip712Name}", version ${network.eip712Version}, ${USDC_DECIMALS} decimals`
  return broken('USDC', `the contract at ${network.usdcAddress} is not ${asked}`, RPC_FIX)
}

/**
 * Judges whether the chain node knows past states of the chain, because a reorganisation may move a payment to another
 * block, and the service finds this block only in past states.
 */
export const judgeOldState = (blocks: number, isKnown: boolean): Finding =>
  isKnown
    ? ok('old state', `${blocks} blocks back can be called`)
    : warning('old state', `the node knows no state ${blocks} blocks back`, RPC_FIX)

export const judgeFees = ({
  baseFeeWei,
  tipWei,
}: {
  baseFeeWei: bigint
  tipWei: bigint
}): Finding => ok('fees', `${formatGwei(baseFeeWei)} gwei a gas, tip ${formatGwei(tipWei)}`)

const PAYMENTS_WARNING = 1_000n

/**
 * Decides whether the balance of a gas wallet is high enough. @param perPaymentWei is the current price of one
 * settlement.
 */
export function judgeGasWallet(
  { address, balanceWei }: { address: string; balanceWei: bigint },
  perPaymentWei: bigint,
): Finding {
  const payments = balanceWei / (perPaymentWei > 0n ? perPaymentWei : 1n)
  const check = `gas wallet ${address.slice(0, 10)}`
  const found = `${formatEther(balanceWei)} ether, enough for ${shownCount(payments)} payments`
  const fix = `send ether to ${address}   # ${formatEther(perPaymentWei * PAYMENTS_WARNING)} for ${PAYMENTS_WARNING} payments`
  if (payments === 0n) return broken(check, found, fix)
  return payments < PAYMENTS_WARNING ? warning(check, found, fix) : ok(check, found)
}

const MILLION = 1_000_000n
const shownCount = (count: bigint): string =>
  count > MILLION ? 'more than a million' : count.toString()

/**
 * Makes the finding of the doctor (the service's self-check) about the key that signs receipts. @param isPublished
 * tells whether the database contains the public part of the receipt key.
 */
export const judgeReceiptKey = (isPublished: boolean): Finding =>
  isPublished
    ? ok('receipt key', 'it is published')
    : broken(
        'receipt key',
        'no worker has published the key: nobody can check a receipt',
        'bun run workers --pool payments   # with the same RECEIPT_SIGNING_KEYS as the API',
      )
