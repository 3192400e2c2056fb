import type { Address, Hex } from 'viem'
import { type Pool, type Queryable, transaction } from '../db.ts'

/** A gas wallet on one chain. */
export type WalletId = { chainId: number; address: Address }

/** A signed transaction. Fees are wei per gas. */
export type SignedTransaction = {
  hash: Hex
  nonce: bigint
  /** Null: the transaction only fills a nonce. */
  paymentId: string | null
  raw: Hex
  maxFeeWei: bigint
  tipWei: bigint
  /** Null: an older version signed it. */
  gasLimit: bigint | null
  /** The hash of the payer's code; null: an account. */
  payerCode: Hex | null
}

/** A stored transaction without a known block. */
export type OpenTransaction = SignedTransaction & {
  wallet: Address
  sendCount: number
  sentHead: bigint | null
  /** Milliseconds since the signing. */
  ageMs: number
}

type OpenRow = {
  hash: Hex
  wallet: Address
  nonce: string
  payment_id: string | null
  raw: Hex
  max_fee_wei: string
  tip_wei: string
  gas_limit: string | null
  payer_code: Hex | null
  send_count: number
  sent_head: string | null
  age_ms: string
}

const OPEN_COLUMNS = `
  hash, wallet, nonce, payment_id, raw, max_fee_wei, tip_wei, gas_limit, payer_code, send_count, sent_head,
  floor(extract(epoch from clock_timestamp() - signed_at) * 1000) as age_ms`

const toOpen = (row: OpenRow): OpenTransaction => ({
  hash: row.hash,
  wallet: row.wallet,
  nonce: BigInt(row.nonce),
  paymentId: row.payment_id,
  raw: row.raw,
  maxFeeWei: BigInt(row.max_fee_wei),
  tipWei: BigInt(row.tip_wei),
  gasLimit: row.gas_limit === null ? null : BigInt(row.gas_limit),
  payerCode: row.payer_code,
  sendCount: row.send_count,
  sentHead: row.sent_head === null ? null : BigInt(row.sent_head),
  ageMs: Number(row.age_ms),
})

/**
 * Registers a wallet, or raises its next nonce to the chain's count: another holder of its key may have sent
 * transactions.
 * @returns the next nonce to assign.
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
 * Assigns nonces to payments and stores their signed transactions in one database transaction, before any broadcast: a
 * crash never loses a hash or leaves a nonce without its bytes. It skips payments that have an open transaction or are
 * not `verified`.
 * @param lone codes of contract wallets, by payment: it also skips a payment whose code has an open transaction.
 * @param sign called under the wallet's lock, once per payment; must wait only for cryptography.
 * @returns the stored transactions, in the order of their nonces.
 */
export async function storeSigned(
  pool: Pool,
  wallet: WalletId,
  paymentIds: readonly string[],
  lone: ReadonlyMap<string, Hex>,
  sign: (paymentId: string, nonce: bigint) => Promise<SignedTransaction>,
): Promise<SignedTransaction[]> {
  return transaction(pool, async (db) => {
    const locked = await db.query<{ id: string }>(
      `select id from payments where id = any ($1) and state = 'verified' order by id for no key update`,
      [paymentIds],
    )
    if (lone.size > 0) await lockCodes(db, [...lone.values()])
    // A separate statement: it must see transactions that another process stored while this one waited for the lock.
    const free = await db.query<{ id: string }>(
      `select p.id from unnest($1::text[], $2::text[]) p (id, code) where not exists (
         select from chain_transactions t where t.payment_id = p.id and t.state = 'open')
       and (p.code is null or not exists (
         select from chain_transactions t where t.chain_id = $3 and t.payer_code = p.code and t.state = 'open'))`,
      [
        locked.rows.map((row) => row.id),
        locked.rows.map((row) => lone.get(row.id) ?? null),
        wallet.chainId,
      ],
    )
    if (free.rows.length === 0) return []
    const next = await lockWallet(db, wallet)
    const signed = await Promise.all(free.rows.map(({ id }, n) => sign(id, next + BigInt(n))))
    await insertTransactions(db, wallet, signed)
    await db.query('update gas_wallets set next_nonce = $3 where chain_id = $1 and address = $2', [
      wallet.chainId,
      wallet.address,
      next + BigInt(signed.length),
    ])
    return signed
  })
}

/**
 * Stores a transaction for an assigned nonce: a replacement with a higher fee, or one that fills a gap.
 * @param replaces the hash of the replaced transaction; null: no transaction has the nonce.
 * @returns false: the nonce is unassigned, or another transaction has taken it meanwhile; nothing changed.
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

/** Until the end of the transaction no other process stores a transaction for these codes. */
async function lockCodes(db: Queryable, codes: readonly Hex[]): Promise<void> {
  await db.query(
    `select pg_advisory_xact_lock(hashtextextended(c.code, 0))
     from (select distinct code from unnest($1::text[]) w (code) order by code) c`,
    [codes],
  )
}

async function lockWallet(db: Queryable, wallet: WalletId): Promise<bigint> {
  const { rows } = await db.query<{ next_nonce: string }>(
    'select next_nonce from gas_wallets where chain_id = $1 and address = $2 for no key update',
    [wallet.chainId, wallet.address],
  )
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
      signed.map((one) => one.paymentId),
      signed.map((one) => one.raw),
      signed.map((one) => one.maxFeeWei),
      signed.map((one) => one.tipWei),
      signed.map((one) => one.gasLimit),
      signed.map((one) => one.payerCode),
    ],
  })
}

/** The result of a broadcast; `error` null: the RPC accepted the transaction. */
export type BroadcastResult = { hash: Hex; error: string | null }

/** Records broadcasts. */
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

/** The open transactions of payments. */
export async function findOpenTransactions(
  db: Queryable,
  paymentIds: readonly string[],
): Promise<OpenTransaction[]> {
  const { rows } = await db.query<OpenRow>({
    name: 'find-open-transactions',
    text: `select ${OPEN_COLUMNS} from chain_transactions
           where payment_id = any ($1) and state = 'open' order by wallet, nonce, max_fee_wei`,
    values: [paymentIds],
  })
  return rows.map(toOpen)
}

/** The payers whose wallet deployment has an open transaction, in the given spelling. */
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

/** Open transactions with a nonce below the chain's count: they or their rivals are in a block. */
export async function findUsedNonces(
  db: Queryable,
  wallet: WalletId,
  used: bigint,
  limit: number,
): Promise<OpenTransaction[]> {
  const { rows } = await db.query<OpenRow>({
    name: 'find-used-nonces',
    text: `select ${OPEN_COLUMNS} from chain_transactions
           where chain_id = $1 and wallet = $2 and nonce < $3 and state = 'open'
           order by nonce limit $4`,
    values: [wallet.chainId, wallet.address, used, limit],
  })
  return rows.map(toOpen)
}

/** Silent open transactions, to rebroadcast. */
export async function findQuietTransactions(
  db: Queryable,
  wallet: WalletId,
  { quietMs, limit }: { quietMs: number; limit: number },
): Promise<OpenTransaction[]> {
  const { rows } = await db.query<OpenRow>({
    name: 'find-quiet-transactions',
    text: `select ${OPEN_COLUMNS} from chain_transactions
           where chain_id = $1 and wallet = $2 and state = 'open'
             and coalesce(sent_at, signed_at) < clock_timestamp() - make_interval(secs => $3::float8 / 1000)
           order by nonce, max_fee_wei desc limit $4`,
    values: [wallet.chainId, wallet.address, quietMs, limit],
  })
  return rows.map(toOpen)
}

/** Whether any transaction of the chain is open. */
export async function hasOpenTransactions(db: Queryable, chainId: number): Promise<boolean> {
  const { rows } = await db.query<{ open: boolean }>({
    name: 'has-open-transactions',
    text: `select exists (select from chain_transactions where chain_id = $1 and state = 'open') as open`,
    values: [chainId],
  })
  return rows[0]!.open
}
