import type { Address, Hex } from 'viem'
import { type Pool, type Queryable, transaction } from '../../db.ts'

/** Identifies a gas wallet on one chain. */
export type WalletId = { chainId: number; address: Address }

/** Describes a signed transaction of a gas wallet. Fees are in wei for each unit of gas. */
export type SignedTransaction = {
  hash: Hex
  nonce: bigint
  /**
   * Lists the payments that the transaction settles. A transaction for several payments is called a group transaction.
   * A transaction for no payment calls a contract, or only uses up a nonce.
   */
  paymentIds: readonly string[]
  raw: Hex
  maxFeeWei: bigint
  tipWei: bigint
  /** Holds the gas limit of the transaction. Null means that an older version of the service signed the transaction. */
  gasLimit: bigint | null
  /**
   * Holds the hash of the contract code at the payer's address. Null means that the payer's address has no contract
   * code.
   */
  payerCode: Hex | null
}

/**
 * Registers a gas wallet, or raises its next nonce to the number of its transactions on the chain. The nonce in the
 * database may be too low, because another program with the wallet's key may have sent transactions.
 * @returns the nonce that the gas wallet assigns to its next transaction.
 */
export async function syncWallet(db: Queryable, wallet: WalletId, used: bigint): Promise<bigint> {
  const { rows } = await db.query<{ next_nonce: string }>({
    name: 'sync-wallet',
    text: `insert into gas_wallets as w (chain_id, address, next_nonce) values ($1, $2, $3)
           on conflict (chain_id, address) do update set next_nonce = greatest(w.next_nonce, $3)
           returning next_nonce`,
    values: [wallet.chainId, wallet.address, used],
  })
  return BigInt(rows[0]!.next_nonce)
}

/**
 * Assigns nonces to signed transactions, and stores all of them in one database transaction before the first sending.
 * Therefore a crash never loses the hash of a sent transaction, and never leaves an assigned nonce without a stored
 * transaction. The function skips a payment that already has an open transaction or is not `verified`.
 * @param parcels lists the payments of each transaction.
 * @param lone maps each payment of a contract wallet to the hash of the wallet's code. The function also skips such a
 * payment if another transaction is open for a wallet with the same code.
 * @param sign is a function that signs one parcel (the payments of one transaction). It runs once for each parcel, and
 * gets the payments of the parcel that have no open transaction. It must not wait for anything except cryptography,
 * because the gas wallet is locked while it runs.
 * @returns the stored transactions, in the order of their nonces.
 */
export async function storeSigned(
  pool: Pool,
  wallet: WalletId,
  parcels: readonly (readonly string[])[],
  lone: ReadonlyMap<string, Hex>,
  sign: (paymentIds: readonly string[], nonce: bigint) => Promise<SignedTransaction>,
): Promise<SignedTransaction[]> {
  return transaction(pool, async (db) => {
    const locked = await db.query<{ id: string }>({
      name: 'lock-verified-payments',
      text: `select id from payments where id = any ($1) and state = 'verified' order by id for no key update`,
      values: [parcels.flat()],
    })
    if (lone.size > 0) await lockCodes(db, [...lone.values()])
    // The payments without an open transaction are found in a separate SQL statement. Only such a statement sees the
    // transactions that another process stored while this process waited for the lock of the gas wallet.
    const { rows } = await db.query<{ id: string }>({
      name: 'find-free-payments',
      text: `
        select p.id from unnest($1::text[], $2::text[]) p (id, code) where not exists (
          select from transaction_payments m join chain_transactions t on t.hash = m.hash
          where m.payment_id = p.id and t.state = 'open')
        and (p.code is null or not exists (
          select from chain_transactions t where t.chain_id = $3 and t.payer_code = p.code and t.state = 'open'))`,
      values: [
        locked.rows.map((row) => row.id),
        locked.rows.map((row) => lone.get(row.id) ?? null),
        wallet.chainId,
      ],
    })
    const free = new Set(rows.map((row) => row.id))
    const due = parcels
      .map((ids) => ids.filter((id) => free.has(id)))
      .filter((ids) => ids.length > 0)
    if (due.length === 0) return []
    const next = await lockWallet(db, wallet)
    const signed = await Promise.all(due.map((ids, n) => sign(ids, next + BigInt(n))))
    await insertNext(db, wallet, next, signed)
    return signed
  })
}

/**
 * Assigns the next nonce of a gas wallet to a contract call that settles no payment, and stores the signed transaction
 * before the caller sends it.
 */
export async function storeCall(
  pool: Pool,
  wallet: WalletId,
  sign: (nonce: bigint) => Promise<SignedTransaction>,
): Promise<SignedTransaction> {
  return transaction(pool, async (db) => {
    const next = await lockWallet(db, wallet)
    const signed = await sign(next)
    await insertNext(db, wallet, next, [signed])
    return signed
  })
}

/**
 * Stores transactions of a gas wallet under consecutive nonces, beginning with the nonce `next`. The caller must have
 * locked the gas wallet.
 */
async function insertNext(
  db: Queryable,
  wallet: WalletId,
  next: bigint,
  signed: readonly SignedTransaction[],
): Promise<void> {
  await insertTransactions(db, wallet, signed)
  await db.query({
    name: 'set-next-nonce',
    text: 'update gas_wallets set next_nonce = $3 where chain_id = $1 and address = $2',
    values: [wallet.chainId, wallet.address, next + BigInt(signed.length)],
  })
}

/**
 * Stores a transaction for a nonce that is already assigned: a replacement with a higher fee, or a transaction that
 * fills a nonce gap.
 * @param replaces is the hash of the replaced open transaction. Null means that the nonce has no open transaction.
 * @returns false if the nonce is unassigned, or if another transaction has taken it in the meantime. The function then
 * has changed nothing.
 */
export async function storeForNonce(
  pool: Pool,
  wallet: WalletId,
  signed: SignedTransaction,
  replaces: Hex | null,
): Promise<boolean> {
  return transaction(pool, async (db) => {
    const next = await lockWallet(db, wallet)
    if (signed.nonce >= next) return false
    const { rows } = await db.query<{ hash: Hex }>(
      `select hash from chain_transactions
       where chain_id = $1 and wallet = $2 and nonce = $3 and state <> 'void'
       order by max_fee_wei desc limit 1`,
      [wallet.chainId, wallet.address, signed.nonce],
    )
    if ((rows[0]?.hash ?? null) !== replaces) return false
    await insertTransactions(db, wallet, [signed])
    return true
  })
}

/**
 * Locks code hashes of contract wallets until the end of the database transaction. Meanwhile, no other process stores a
 * transaction for wallets with the same code.
 */
async function lockCodes(db: Queryable, codes: readonly Hex[]): Promise<void> {
  await db.query(
    `select pg_advisory_xact_lock(hashtextextended(c.code, 0))
     from (select distinct code from unnest($1::text[]) w (code) order by code) c`,
    [codes],
  )
}

async function lockWallet(db: Queryable, wallet: WalletId): Promise<bigint> {
  const { rows } = await db.query<{ next_nonce: string }>({
    name: 'lock-gas-wallet',
    text: 'select next_nonce from gas_wallets where chain_id = $1 and address = $2 for no key update',
    values: [wallet.chainId, wallet.address],
  })
  if (rows[0] === undefined) throw new Error(`gas wallet ${wallet.address} is not registered`)
  return BigInt(rows[0].next_nonce)
}

async function insertTransactions(
  db: Queryable,
  wallet: WalletId,
  signed: readonly SignedTransaction[],
): Promise<void> {
  await db.query({
    name: 'insert-transactions',
    text: `insert into chain_transactions (
             chain_id, wallet, hash, nonce, payment_id, raw, max_fee_wei, tip_wei, gas_limit, payer_code)
           select $1, $2, i.* from unnest(
             $3::text[], $4::bigint[], $5::text[], $6::text[], $7::numeric[], $8::numeric[], $9::bigint[],
             $10::text[]) i`,
    values: [
      wallet.chainId,
      wallet.address,
      signed.map((one) => one.hash),
      signed.map((one) => one.nonce),
      signed.map((one) => (one.paymentIds.length === 1 ? one.paymentIds[0] : null)),
      signed.map((one) => one.raw),
      signed.map((one) => one.maxFeeWei),
      signed.map((one) => one.tipWei),
      signed.map((one) => one.gasLimit),
      signed.map((one) => one.payerCode),
    ],
  })
  const members = signed.flatMap(({ hash, paymentIds }) =>
    paymentIds.length > 1 ? paymentIds.map((id) => ({ hash, id })) : [],
  )
  if (members.length === 0) return
  await db.query({
    name: 'insert-members',
    text: `insert into chain_transaction_payments (hash, payment_id)
           select * from unnest($1::text[], $2::text[])`,
    values: [members.map((one) => one.hash), members.map((one) => one.id)],
  })
}

/**
 * Describes the RPC node's response to a sent transaction. Null in `error` means that the node accepted the
 * transaction.
 */
export type BroadcastResult = { hash: Hex; error: string | null }

/** Records the sending of each given transaction, with the error of the RPC node. */
export async function recordSends(
  db: Queryable,
  outcomes: readonly BroadcastResult[],
  head: bigint,
): Promise<void> {
  if (outcomes.length === 0) return
  await db.query({
    name: 'record-sends',
    text: `update chain_transactions t set
             sent_at = clock_timestamp(), send_count = t.send_count + 1, send_error = o.error,
             sent_head = coalesce(t.sent_head, $3)
           from unnest($1::text[], $2::text[]) o (hash, error) where t.hash = o.hash`,
    values: [outcomes.map((one) => one.hash), outcomes.map((one) => one.error), head],
  })
}
