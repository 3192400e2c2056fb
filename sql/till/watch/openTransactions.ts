import type { Address, Hex } from 'viem'
import type { Queryable } from '../../db.ts'
import type { SignedTransaction, WalletId } from '../settle/gasWallets.ts'

/** Describes a stored transaction that the service has not seen in a block. */
export type OpenTransaction = SignedTransaction & {
  wallet: Address
  sendCount: number
  sentHead: bigint | null
  /**
   * Tells whether the RPC node lacks the transaction, because the service never sent it, or because the RPC node
   * refused it.
   */
  isUnsent: boolean
}

type OpenRow = {
  hash: Hex
  wallet: Address
  nonce: string
  payment_ids: string[]
  raw: Hex
  max_fee_wei: string
  tip_wei: string
  gas_limit: string | null
  payer_code: Hex | null
  send_count: number
  sent_head: string | null
  is_unsent: boolean
}

const OPEN_COLUMNS = `
  t.hash, t.wallet, t.nonce, t.raw, t.max_fee_wei, t.tip_wei, t.gas_limit, t.payer_code, t.send_count, t.sent_head,
  t.sent_at is null or t.send_error is not null as is_unsent,
  case when t.payment_id is not null then array[t.payment_id]
       else array(select m.payment_id from chain_transaction_payments m where m.hash = t.hash) end as payment_ids`

const toOpen = (row: OpenRow): OpenTransaction => ({
  hash: row.hash,
  wallet: row.wallet,
  nonce: BigInt(row.nonce),
  paymentIds: row.payment_ids,
  raw: row.raw,
  maxFeeWei: BigInt(row.max_fee_wei),
  tipWei: BigInt(row.tip_wei),
  gasLimit: row.gas_limit === null ? null : BigInt(row.gas_limit),
  payerCode: row.payer_code,
  sendCount: row.send_count,
  sentHead: row.sent_head === null ? null : BigInt(row.sent_head),
  isUnsent: row.is_unsent,
})

/**
 * Finds the open transactions that should settle payments. The result contains each transaction only once, even if the
 * transaction has several payments.
 */
export async function findOpenTransactions(
  db: Queryable,
  paymentIds: readonly string[],
): Promise<OpenTransaction[]> {
  const { rows } = await db.query<OpenRow>({
    name: 'find-open-transactions',
    text: `select ${OPEN_COLUMNS} from chain_transactions t
           where t.state = 'open' and t.hash in (
             select m.hash from transaction_payments m where m.payment_id = any ($1))
           order by t.wallet, t.nonce, t.max_fee_wei`,
    values: [paymentIds],
  })
  return rows.map(toOpen)
}

/** Tells whether a transaction is a group transaction, which settles several payments of this service. */
export async function isGroup(db: Queryable, hash: Hex): Promise<boolean> {
  const { rowCount } = await db.query(
    'select from chain_transaction_payments where hash = $1 limit 1',
    [hash],
  )
  return rowCount === 1
}

/** Tells whether this service signed a transaction for a payment, alone or in a group. */
export async function isTransactionOf(
  db: Queryable,
  hash: Hex,
  paymentId: string,
): Promise<boolean> {
  const { rowCount } = await db.query(
    'select from transaction_payments where hash = $1 and payment_id = $2',
    [hash, paymentId],
  )
  return rowCount !== 0
}

/**
 * Returns those given payers that have an open transaction to deploy their contract wallet. The addresses in the result
 * keep the caller's spelling.
 */
export async function findDeployingPayers(
  db: Queryable,
  chainId: number,
  payers: readonly string[],
): Promise<Set<string>> {
  const { rows } = await db.query<{ payer: string }>(
    `select w.payer from unnest($2::text[]) w (payer)
     where exists (
       select from payments p join chain_transactions t on t.payment_id = p.id and t.state = 'open'
       where p.chain_id = $1 and lower(p.payer) = lower(w.payer) and p.factory is not null)`,
    [chainId, payers],
  )
  return new Set(rows.map((row) => row.payer))
}

/**
 * Finds those open transactions whose nonce is already used on the chain. A block then contains either this transaction
 * or another one with the same nonce.
 */
export async function findUsedNonces(
  db: Queryable,
  wallet: WalletId,
  used: bigint,
  limit: number,
): Promise<OpenTransaction[]> {
  const { rows } = await db.query<OpenRow>({
    name: 'find-used-nonces',
    text: `select ${OPEN_COLUMNS} from chain_transactions t
           where chain_id = $1 and wallet = $2 and nonce < $3 and state = 'open'
           order by nonce limit $4`,
    values: [wallet.chainId, wallet.address, used, limit],
  })
  return rows.map(toOpen)
}

/**
 * Finds the open transactions that have not changed for at least `quietMs`, so that the caller can send these
 * transactions again.
 */
export async function findQuietTransactions(
  db: Queryable,
  wallet: WalletId,
  { quietMs, limit }: { quietMs: number; limit: number },
): Promise<OpenTransaction[]> {
  const { rows } = await db.query<OpenRow>({
    name: 'find-quiet-transactions',
    text: `select ${OPEN_COLUMNS} from chain_transactions t
           where chain_id = $1 and wallet = $2 and state = 'open'
             and coalesce(sent_at, signed_at) < clock_timestamp() - make_interval(secs => $3::float8 / 1000)
           order by nonce, max_fee_wei desc limit $4`,
    values: [wallet.chainId, wallet.address, quietMs, limit],
  })
  return rows.map(toOpen)
}

/**
 * Finds the open transaction of a nonce that the RPC node accepted and that the service has sent exactly once. The
 * sending must be at least `quietMs` ago.
 * @returns null if no open transaction of the nonce was sent only once.
 */
export async function findSentOnce(
  db: Queryable,
  wallet: WalletId,
  { nonce, quietMs }: { nonce: bigint; quietMs: number },
): Promise<OpenTransaction | null> {
  const { rows } = await db.query<OpenRow>({
    name: 'find-sent-once',
    text: `select ${OPEN_COLUMNS} from chain_transactions t
           where chain_id = $1 and wallet = $2 and nonce = $3 and state = 'open' and send_count = 1
             and send_error is null and sent_at < clock_timestamp() - make_interval(secs => $4::float8 / 1000)
           order by max_fee_wei desc limit 1`,
    values: [wallet.chainId, wallet.address, nonce, quietMs],
  })
  return rows[0] === undefined ? null : toOpen(rows[0])
}

/** Tells whether any gas wallet has an open transaction on the chain. */
export async function hasOpenTransactions(db: Queryable, chainId: number): Promise<boolean> {
  const { rows } = await db.query<{ open: boolean }>({
    name: 'has-open-transactions',
    text: `select exists (select from chain_transactions where chain_id = $1 and state = 'open') as open`,
    values: [chainId],
  })
  return rows[0]!.open
}
