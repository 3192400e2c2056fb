import type { Queryable } from '../../db.ts'
import type { WalletId } from './gasWallets.ts'

/**
 * Finds the gaps in the nonces of a gas wallet, lowest first. A gap is an assigned nonce that is unused on the chain
 * and has no open transaction. It blocks all later transactions of the wallet.
 */
export async function findGaps(
  db: Queryable,
  wallet: WalletId,
  used: bigint,
  limit: number,
): Promise<bigint[]> {
  const { rows } = await db.query<{ nonce: string }>({
    name: 'find-gaps',
    text: `select n.nonce from gas_wallets w, generate_series($3::bigint, w.next_nonce - 1) n (nonce)
           where w.chain_id = $1 and w.address = $2 and not exists (
             select from chain_transactions t
             where t.chain_id = $1 and t.wallet = $2 and t.nonce = n.nonce and t.state = 'open')
           order by n.nonce limit $4`,
    values: [wallet.chainId, wallet.address, used, limit],
  })
  return rows.map((row) => BigInt(row.nonce))
}

/**
 * Marks the mined transactions of a nonce as open again after a reorganisation. @returns the number of reopened
 * transactions.
 */
export async function reopenTransactions(
  db: Queryable,
  wallet: WalletId,
  nonce: bigint,
): Promise<number> {
  const { rowCount } = await db.query(
    `update chain_transactions set
       state = 'open', succeeded = null, block_number = null, block_hash = null, sent_at = null
     where chain_id = $1 and wallet = $2 and nonce = $3 and state = 'mined'`,
    [wallet.chainId, wallet.address, nonce],
  )
  return rowCount ?? 0
}
