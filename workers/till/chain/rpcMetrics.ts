import { Counter, Gauge, type Registry } from 'prom-client'
import type { Config } from '../../../shared/config/config.ts'
import { chainNodes, type ObserveNode } from './chainRpc.ts'

/**
 * Counts how often each chain node agreed with the other nodes, lagged behind, differed, or gave no reply. If the
 * service uses only one node, this node always agrees.
 */
export function measureNodes(registry: Registry, chain: Config['chain']): ObserveNode {
  const answers = new Counter({
    name: 'purser_rpc_answers_total',
    help: 'Answers of an RPC: agrees, behind, differs, or none',
    labelNames: ['rpc', 'outcome'],
    registers: [registry],
  })
  const up = new Gauge({
    name: 'purser_rpc_node_up',
    help: 'Whether an RPC gave its last answer',
    labelNames: ['rpc'],
    registers: [registry],
  })
  for (const { name } of chainNodes(chain)) {
    for (const outcome of ['agrees', 'behind', 'differs', 'none'] as const) {
      answers.inc({ rpc: name, outcome }, 0)
    }
  }
  return (rpc, outcome) => {
    answers.inc({ rpc, outcome })
    up.set({ rpc }, outcome === 'none' ? 0 : 1)
  }
}
