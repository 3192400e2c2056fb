import type { Metadata } from '../../../shared/till/bazaar/metadata.ts'
import type { NetworkName } from '../../../shared/till/usdc.ts'
import type { Queryable } from '../../db.ts'
import type { VerificationStatus } from './endpoints.ts'
import { soldByAnother } from './rivalEndpoints.ts'

/**
 * Holds the payment settings of a seller's project, and the chain of the service. A null `payTo` means that the project
 * has set no address for its income. A null `network` means that the chain's RPC node has never responded.
 */
export type SellerRow = {
  payTo: string | null
  paymentsEnabled: boolean
  network: NetworkName | null
  chainId: number | null
}

type SellerColumns = {
  pay_to: string | null
  payments_enabled: boolean
  network: NetworkName | null
  chain_id: string | null
}

/**
 * Reads the payment settings of a seller's project in one round trip to the database. @returns null if the project does
 * not exist or is deleted.
 */
export async function findSeller(db: Queryable, projectId: string): Promise<SellerRow | null> {
  const { rows } = await db.query<SellerColumns>({
    name: 'find-seller',
    text: `select p.pay_to, p.payments_enabled, c.network, c.chain_id
           from projects p left join chain_status c on true
           where p.id = $1 and p.deleted_at is null`,
    values: [projectId],
  })
  return rows[0] === undefined ? null : toSeller(rows[0])
}

const toSeller = (row: SellerColumns): SellerRow => ({
  payTo: row.pay_to,
  paymentsEnabled: row.payments_enabled,
  network: row.network,
  chainId: row.chain_id === null ? null : Number(row.chain_id),
})

/**
 * Identifies a project, and a resource that the project may sell. The field `matchKey` comes from `parseResourceUrl`.
 */
export type WantedSale = { projectId: string; matchKey: string }

/**
 * Describes the endpoint through which a seller sells a resource. The field `metadata` describes the endpoint's HTTP
 * method and input. The x402 challenge holds the same description.
 */
type SoldEndpoint = {
  id: string
  verification: VerificationStatus | 'paused'
  discoverable: boolean
  metadata: Metadata
}

export type Sale = {
  /** Holds the seller of the resource, in the form of {@link findSeller}. */
  seller: SellerRow | null
  /**
   * Holds the seller's registered endpoint for the resource. Null means that the seller has registered none, or has
   * deleted it.
   */
  endpoint: SoldEndpoint | null
  isSoldByAnother: boolean
}

/**
 * Reads sellers with their resources in one SQL statement.
 * @returns one result (a seller with its endpoint) for each item of `wanted`, in the order of `wanted`.
 */
export async function findSales(db: Queryable, wanted: readonly WantedSale[]): Promise<Sale[]> {
  const keyOf = ({ projectId, matchKey }: WantedSale) => `${projectId} ${matchKey}`
  // The query reads equal items of `wanted` only once, because many concurrent payments may be for the same resource.
  const distinct = [...new Map(wanted.map((sale) => [keyOf(sale), sale])).values()]
  const { rows } = await db.query<
    SellerColumns & {
      project_id: string
      match_key: string
      is_live: boolean
      endpoint_id: string | null
      verification_status: VerificationStatus | 'paused'
      discoverable: boolean
      metadata: Metadata
      sold: boolean
    }
  >({
    name: 'find-sales',
    text: `
      select w.project_id, w.match_key, p.id is not null as is_live, p.pay_to, p.payments_enabled, c.network, c.chain_id,
             o.id as endpoint_id, o.discoverable,
             case when o.paused_at is null then o.verification_status else 'paused' end as verification_status,
             o.open_api_metadata || o.metadata as metadata, ${soldByAnother('w.project_id', 'w.match_key')} as sold
      from unnest($1::text[], $2::text[]) as w (project_id, match_key)
      left join projects p on p.id = w.project_id and p.deleted_at is null
      left join chain_status c on true
      left join seller_endpoints o
        on o.project_id = w.project_id and o.match_key = w.match_key and o.deleted_at is null`,
    values: [distinct.map((sale) => sale.projectId), distinct.map((sale) => sale.matchKey)],
  })
  const sales = new Map(
    rows.map((row): [string, Sale] => [
      keyOf({ projectId: row.project_id, matchKey: row.match_key }),
      {
        seller: row.is_live ? toSeller(row) : null,
        endpoint:
          row.endpoint_id === null
            ? null
            : {
                id: row.endpoint_id,
                verification: row.verification_status,
                discoverable: row.discoverable,
                metadata: row.metadata,
              },
        isSoldByAnother: row.sold,
      },
    ]),
  )
  return wanted.map((sale) => sales.get(keyOf(sale))!)
}

/** Lists the addresses of the gas wallets on a chain. */
export async function listGasWallets(db: Queryable, chainId: number): Promise<string[]> {
  const { rows } = await db.query<{ address: string }>({
    name: 'list-gas-wallets',
    text: 'select address from gas_wallets where chain_id = $1 order by address',
    values: [chainId],
  })
  return rows.map((row) => row.address)
}

/** Tells whether an address, in lower case, has ever been a gas wallet of this service. */
export async function isGasWallet(db: Queryable, address: string): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'is-gas-wallet',
    text: 'select from gas_wallets where lower(address) = $1 limit 1',
    values: [address],
  })
  return rowCount === 1
}
