import type { NetworkName } from '../../../shared/till/usdc.ts'
import type { Queryable } from '../../db.ts'

/**
 * Writes the SQL condition that a payment or purchase is on the present chain of the service. A former chain takes no
 * money from a balance on this chain, and its payments stay open for ever, because no worker reads it.
 * @param row is the SQL alias of a row with the column `network`.
 */
export const isHere = (row: string): string =>
  `${row}.network = coalesce((select network from chain_status), ${row}.network)`

/** Writes the same SQL condition as {@link isHere} for a row with the column `chain_id`. */
export const isOnThisChain = (row: string): string =>
  `${row}.chain_id = coalesce((select chain_id from chain_status), ${row}.chain_id)`

/**
 * Reads the last report of the payment workers about the chain's RPC node. @returns null if the payment workers have
 * reported nothing yet.
 */
export async function readChainStatus(db: Queryable): Promise<{
  /** Holds the chain of the RPC node. Null means that the RPC node has never responded. */
  network: NetworkName | null
  /** Holds the error of the last call to the RPC node. Null means that the last call to the RPC node succeeded. */
  rpcError: string | null
  /** Counts the milliseconds since the last report of the payment workers about the RPC node. */
  ageMs: number
} | null> {
  const { rows } = await db.query<{
    network: NetworkName | null
    rpc_error: string | null
    age_ms: string
  }>({
    name: 'read-chain-status',
    text: `select network, rpc_error, floor(extract(epoch from clock_timestamp() - checked_at) * 1000) as age_ms
           from chain_status`,
  })
  const row = rows[0]
  if (row === undefined) return null
  return { network: row.network, rpcError: row.rpc_error, ageMs: Number(row.age_ms) }
}

/** Records that the RPC node responded, together with the newest block. */
export async function recordHead(
  db: Queryable,
  seen: { network: NetworkName; chainId: number; number: bigint; hash: string },
): Promise<void> {
  await db.query({
    name: 'record-head',
    text: `insert into chain_status as c (chain_id, network, head_number, head_hash, rpc_error, checked_at)
           values ($1, $2, $3, $4, null, clock_timestamp())
           on conflict (singleton) do update set
             chain_id = $1, network = $2, head_number = $3, head_hash = $4, rpc_error = null,
             checked_at = clock_timestamp()`,
    values: [seen.chainId, seen.network, seen.number, seen.hash],
  })
}

/** Records that the RPC node does not respond. The stored number of the chain's newest block stays unchanged. */
export async function recordRpcTrouble(db: Queryable, error: string): Promise<void> {
  await db.query({
    name: 'record-rpc-trouble',
    text: `insert into chain_status (rpc_error, checked_at) values ($1, clock_timestamp())
           on conflict (singleton) do update set rpc_error = $1, checked_at = clock_timestamp()`,
    values: [error],
  })
}
