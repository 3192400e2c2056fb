import type { Config } from '../../../shared/config/config.ts'
import { createQuorumRpc, type Node, type NodeOutcome } from './quorum.ts'
import { createRpc, type Rpc } from './rpc.ts'

/** Describes a callback that gets the name of a chain node and a rating of the node's reply. */
export type ObserveNode = (name: string, outcome: NodeOutcome) => void

/**
 * Returns the chain nodes that RPC_URL lists. The name of each chain node is only the host of its URL, because the rest
 * of the URL can contain an API key.
 */
export function chainNodes(
  { rpcUrls }: Pick<Config['chain'], 'rpcUrls'>,
  timeoutMs?: number,
): Node[] {
  const hosts = rpcUrls.map((url) => new URL(url).host)
  return rpcUrls.map((url, n) => {
    const earlier = hosts.slice(0, n).filter((host) => host === hosts[n]).length
    const name = earlier === 0 ? hosts[n]! : `${hosts[n]} #${earlier + 1}`
    return { name, rpc: createRpc(timeoutMs === undefined ? { url } : { url, timeoutMs }) }
  })
}

/**
 * Creates the JSON-RPC client of the chain. The JSON-RPC client asks either one chain node, or several chain nodes that
 * must agree.
 */
export function chainRpc(
  chain: Pick<Config['chain'], 'rpcUrls' | 'rpcQuorum'>,
  { timeoutMs, observe }: { timeoutMs?: number; observe?: ObserveNode | undefined } = {},
): Rpc {
  const nodes = chainNodes(chain, timeoutMs)
  if (nodes.length === 1) return observed(nodes[0]!, observe)
  const options = { nodes, quorum: chain.rpcQuorum }
  return createQuorumRpc(observe === undefined ? options : { ...options, observe })
}

/**
 * Counts the replies of the chain node if the service uses only one node. There are no other replies to compare, so the
 * service trusts this node.
 */
function observed({ name, rpc }: Node, observe: ObserveNode = () => {}): Rpc {
  const counted = async <Answer>(asking: Promise<Answer>): Promise<Answer> => {
    try {
      const answer = await asking
      observe(name, 'agrees')
      return answer
    } catch (error) {
      observe(name, 'none')
      throw error
    }
  }
  return {
    call: (method, params) => counted(rpc.call(method, params)),
    batch: (calls) => counted(rpc.batch(calls)),
  }
}
