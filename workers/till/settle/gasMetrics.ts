import { Gauge, type Registry } from 'prom-client'
import { formatEther } from 'viem'
import type { ChainView } from '../chain/chainView.ts'

/**
 * Reports as a metric the balance of each gas wallet (which pays transaction fees). The balance is the value that the
 * watcher last read.
 */
export function measureGas(registry: Registry, { balances }: Pick<ChainView, 'balances'>): void {
  new Gauge({
    name: 'purser_gas_wallet_balance_ether',
    help: 'Balance of a gas wallet at the last look, in ether',
    labelNames: ['wallet'],
    registers: [registry],
    collect() {
      for (const [wallet, wei] of balances) this.set({ wallet }, Number(formatEther(wei)))
    },
  })
}
