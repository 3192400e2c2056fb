import type { NetworkName } from '../../shared/till/usdc.ts'
import type { Queryable } from '../db.ts'

/** A project's payment settings and the chain. `payTo` null: not set. `network` null: the RPC has never answered. */
export type SellerRow = {
  payTo: string | null
  paymentsEnabled: boolean
  network: NetworkName | null
  chainId: number | null
}

/** Reads a live project as a seller, in one round trip; null: no such project. */
export async function findSeller(db: Queryable, projectId: string): Promise<SellerRow | null> {
  const { rows } = await db.query<{
    pay_to: string | null
    payments_enabled: boolean
    network: NetworkName | null
    chain_id: string | null
  }>({
    name: 'find-seller',
    text: `select p.pay_to, p.payments_enabled, c.network, c.chain_id
           from projects p left join chain_status c on true
           where p.id = $1 and p.deleted_at is null`,
    values: [projectId],
  })
  const row = rows[0]
  if (row === undefined) return null
  return {
    payTo: row.pay_to,
    paymentsEnabled: row.payments_enabled,
    network: row.network,
    chainId: row.chain_id === null ? null : Number(row.chain_id),
  }
}

/** The addresses that send transactions on a chain. */
export async function listGasWallets(db: Queryable, chainId: number): Promise<string[]> {
  const { rows } = await db.query<{ address: string }>({
    name: 'list-gas-wallets',
    text: 'select address from gas_wallets where chain_id = $1 order by address',
    values: [chainId],
  })
  return rows.map((row) => row.address)
}

/** Whether an address, in lower case, has ever sent transactions for this service. */
export async function isGasWallet(db: Queryable, address: string): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'is-gas-wallet',
    text: 'select from gas_wallets where lower(address) = $1 limit 1',
    values: [address],
  })
  return rowCount === 1
}
