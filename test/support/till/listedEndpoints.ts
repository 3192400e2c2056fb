/** Makes sellers, and endpoints for the public list of paid resources. */
import { newEndpointId } from '../../../shared/ids.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import type { Pool } from '../../../sql/db.ts'
import { recordHead } from '../../../sql/till/watch/chainStatus.ts'
import { newProject } from './tillRows.ts'

const { network, chainId } = USDC_NETWORKS['base-sepolia']
export const LISTED_PAY_TO = `0x${'Ab'.repeat(20)}`

/** Records that the payment workers are connected to the chain of the listed endpoints. */
export const connectChain = (pool: Pool) =>
  recordHead(pool, { network, chainId, number: 1n, hash: '0x1' })

/** Makes a project that may sell. @returns its id */
export async function newListedSeller(pool: Pool, payTo = LISTED_PAY_TO): Promise<string> {
  const id = await newProject(pool)
  await pool.query('update projects set payments_enabled = true, pay_to = $2 where id = $1', [
    id,
    payTo,
  ])
  return id
}

type Listed = {
  priceAtomic?: number
  description?: string
  /** Holds the metadata that the seller gave. */
  metadata?: object
  /** Holds the metadata that the last check found in the challenge of the endpoint. */
  seen?: object
  versions?: number[]
}

/** Makes a verified endpoint that its seller wants in the public list of endpoints. @returns its id */
export async function listEndpoint(
  pool: Pool,
  projectId: string,
  url: string,
  more: Listed = {},
): Promise<string> {
  const { priceAtomic = 10, description = null, metadata = {}, seen = {}, versions = [2] } = more
  const id = newEndpointId()
  await pool.query(
    `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network, description,
       metadata, seen_metadata, discoverable, verification_status, verification_checked_at, challenge_versions)
     values ($1, $2, $3, $1, $4, $5, $6, $7, $8, true, 'verified', now(), $9)`,
    [id, projectId, url, priceAtomic, network, description, metadata, seen, versions],
  )
  return id
}
