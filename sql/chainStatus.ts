import type { NetworkName } from '../shared/usdc.ts'
import type { Queryable } from './db.ts'

<<<<<<< HEAD
/** What the payment workers last reported of the RPC; null when none ever did. */
export async function readChainStatus(db: Queryable): Promise<{
  /** The chain they are connected to; null before it first answered. */
  network: NetworkName | null
  /** Null while the last call succeeded. */
=======
/** The chain as the payment workers last saw it. */
export type ChainStatus = {
  network: NetworkName
  chainId: number
  /** Null while the last call of the RPC succeeded. */
>>>>>>> 186cf2a6a5ed0819a85fd36b8d526b0287bf7b69
  rpcError: string | null
  /** Milliseconds since a worker last reported. */
  ageMs: number
<<<<<<< HEAD
} | null> {
  const { rows } = await db.query<{
    network: NetworkName | null
    rpc_error: string | null
    age_ms: string
  }>({
    name: 'read-chain-status',
    text: `select network, rpc_error, floor(extract(epoch from clock_timestamp() - checked_at) * 1000) as age_ms
=======
}

type StatusRow = {
  network: NetworkName | null
  chain_id: string | null
  rpc_error: string | null
  age_ms: string
}

/** What is known of the chain; null when no worker ever reported, `known: null` before the RPC first answered. */
export async function readChainStatus(
  db: Queryable,
): Promise<(Pick<ChainStatus, 'rpcError' | 'ageMs'> & { known: ChainStatus | null }) | null> {
  const { rows } = await db.query<StatusRow>({
    name: 'read-chain-status',
    text: `select network, chain_id, rpc_error,
             floor(extract(epoch from clock_timestamp() - checked_at) * 1000) as age_ms
>>>>>>> 186cf2a6a5ed0819a85fd36b8d526b0287bf7b69
           from chain_status`,
  })
  const row = rows[0]
  if (row === undefined) return null
<<<<<<< HEAD
  return { network: row.network, rpcError: row.rpc_error, ageMs: Number(row.age_ms) }
=======
  const report = { rpcError: row.rpc_error, ageMs: Number(row.age_ms) }
  if (row.network === null || row.chain_id === null) return { ...report, known: null }
  return {
    ...report,
    known: { ...report, network: row.network, chainId: Number(row.chain_id) },
  }
>>>>>>> 186cf2a6a5ed0819a85fd36b8d526b0287bf7b69
}

/** Reports an answer of the RPC. */
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

/** Reports that the RPC does not answer; what was known of the chain stays. */
export async function recordRpcTrouble(db: Queryable, error: string): Promise<void> {
  await db.query({
    name: 'record-rpc-trouble',
    text: `insert into chain_status (rpc_error, checked_at) values ($1, clock_timestamp())
           on conflict (singleton) do update set rpc_error = $1, checked_at = clock_timestamp()`,
    values: [error],
  })
}
