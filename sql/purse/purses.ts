/**
 * Stores purses. A purse is a project's wallet with one address on the chain. Only this service has the private key of
 * a purse's address.
 */
import { createHmac } from 'node:crypto'
import type { Address, Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount, sign } from 'viem/accounts'
import type { DigestSigner } from '../../shared/purse/paymentHeader.ts'
import type { Keyring, SecretContext } from '../../shared/vault/envelope.ts'
import { type Actor, writeAudit } from '../account/audit.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { isHere } from '../till/watch/chainStatus.ts'

/** Returns the encryption context (associated data) of a purse's private key. */
export const purseKeyContext = (projectId: string, address: string): SecretContext => ({
  purpose: 'purse-key',
  projectId,
  name: address,
  version: 1,
})

/**
 * Describes the purse (the on-chain wallet) of a project. Addresses are in lower case, and amounts are in atomic units
 * of USDC.
 */
export type Purse = {
  projectId: string
  address: string
  createdAt: Date
  frozenAt: Date | null
  frozenBy: string | null
  lowAtomic: bigint | null
  /** Holds the maximum balance of the purse. Null means that the purse may hold any amount. */
  maxAtomic: bigint | null
  /**
   * Holds the payout address for money above the maximum balance. The field `next` holds a new payout address that is
   * not valid yet.
   */
  payout: { address: string | null; next: { address: string; from: Date } | null }
  /** Holds the balance of the purse. Null means that no worker process has read the balance from the chain yet. */
  balanceAtomic: bigint | null
  balanceBlock: bigint | null
  balanceAt: Date | null
  /** Holds the sum of the signed payments that sellers may still settle. */
  openAtomic: bigint
}

type PurseRow = {
  project_id: string
  address: string
  created_at: Date
  frozen_at: Date | null
  frozen_by: string | null
  low_atomic: string | null
  max_atomic: string | null
  payout_address: string | null
  payout_next: string | null
  payout_next_at: Date | null
  balance_atomic: string | null
  balance_block: string | null
  balance_at: Date | null
  open_atomic: string
}

const big = (text: string | null): bigint | null => (text === null ? null : BigInt(text))

const IS_HERE = isHere('o')

/**
 * Writes an SQL expression for the part of a balance that is not available at a purse's address. This part consists of
 * open signed payments, and of payments in blocks after the last reading of the balance. Their money is still in the
 * last known balance, even if their blocks are final.
 * @param a is the SQL alias of a row of the table purses or purse_keys
 */
export const openSum = (a: string): string => `(
  (select coalesce(sum(o.amount_atomic), 0) from purchases o
   where o.project_id = ${a}.project_id and o.payer = ${a}.address and o.money = 'open' and ${IS_HERE})
  + (select coalesce(sum(o.amount_atomic), 0) from purchases o
     where o.payer = ${a}.address and o.money = 'spent' and o.block_number > ${a}.balance_block and ${IS_HERE}))`

const COLUMNS = `p.project_id, p.address, p.created_at, p.frozen_at, p.frozen_by, p.low_atomic, p.balance_atomic,
  p.balance_block, p.balance_at, p.max_atomic, p.payout_address, p.payout_next, p.payout_next_at,
  ${openSum('p')} as open_atomic`

const toPurse = (row: PurseRow): Purse => ({
  projectId: row.project_id,
  address: row.address,
  createdAt: row.created_at,
  frozenAt: row.frozen_at,
  frozenBy: row.frozen_by,
  lowAtomic: big(row.low_atomic),
  maxAtomic: big(row.max_atomic),
  payout: payoutOf(row),
  balanceAtomic: big(row.balance_atomic),
  balanceBlock: big(row.balance_block),
  balanceAt: row.balance_at,
  openAtomic: BigInt(row.open_atomic),
})

function payoutOf({ payout_address, payout_next, payout_next_at }: PurseRow): Purse['payout'] {
  if (payout_next === null || payout_next_at === null)
    return { address: payout_address, next: null }
  if (payout_next_at.getTime() <= Date.now()) return { address: payout_next, next: null }
  return { address: payout_address, next: { address: payout_next, from: payout_next_at } }
}

/**
 * Finds the purse (the wallet) of a project.
 * @returns null if the project has no purse or is deleted.
 */
export async function findPurse(db: Queryable, projectId: string): Promise<Purse | null> {
  const { rows } = await db.query<PurseRow>({
    name: 'find-purse',
    text: `select ${COLUMNS} from purses p join projects j on j.id = p.project_id
           where p.project_id = $1 and j.deleted_at is null`,
    values: [projectId],
  })
  return rows[0] === undefined ? null : toPurse(rows[0])
}

/** Tells whether an address belongs to the project's purse, either under its present key or under an earlier key. */
export async function isPurseAddress(
  db: Queryable,
  projectId: string,
  address: string,
): Promise<boolean> {
  const { rowCount } = await db.query(
    'select from purse_keys where project_id = $1 and address = $2',
    [projectId, address.toLowerCase()],
  )
  return rowCount === 1
}

/** Tells whether an address belongs to the purse of any project, under its present key or an earlier key. */
export async function isAnyPurseAddress(db: Queryable, address: string): Promise<boolean> {
  const { rowCount } = await db.query('select from purse_keys where address = $1', [
    address.toLowerCase(),
  ])
  return rowCount === 1
}

/**
 * Creates the purse (the wallet) of a project, with a new private key.
 * @returns false if the project already has a purse, or if there is no such project.
 */
export function openPurse(pool: Pool, keyring: Keyring, actor: Actor): Promise<boolean> {
  const { projectId } = actor
  return transaction(pool, async (db) => {
    const privateKey = generatePrivateKey()
    const address = privateKeyToAccount(privateKey).address.toLowerCase()
    const { rowCount } = await db.query(
      `insert into purses (project_id, address)
       select id, $2 from projects where id = $1 and deleted_at is null
       on conflict (project_id) do nothing`,
      [projectId, address],
    )
    if (rowCount === 0) return false
    await storePurseKey(db, keyring, { projectId, privateKey })
    await writeAudit(db, actor, { action: 'purse.open', subject: address, outcome: 'ok' })
    return true
  })
}

/** Encrypts and stores a private key of a purse. */
export async function storePurseKey(
  db: Queryable,
  keyring: Keyring,
  { projectId, privateKey }: { projectId: string; privateKey: Hex },
): Promise<void> {
  const address = privateKeyToAccount(privateKey).address.toLowerCase()
  const bytes = Buffer.from(privateKey.slice(2), 'hex')
  const sealed = keyring.seal(bytes, purseKeyContext(projectId, address))
  bytes.fill(0)
  await db.query(
    `insert into purse_keys (address, project_id, key_id, wrapped_key, ciphertext) values ($1, $2, $3, $4, $5)`,
    [address, projectId, sealed.keyId, sealed.wrappedKey, sealed.ciphertext],
  )
}

/** Signs with the private key of a purse, and makes the nonces of its authorizations. */
export type PurseSigner = DigestSigner & {
  /**
   * Returns the nonce for the authorization of one order. The nonce depends only on the private key and the idempotency
   * key of the order. After a restore of an older backup, the same order gets the same nonce, and the chain accepts a
   * nonce once. Nobody can guess the nonce without the private key.
   */
  nonceOf(idempotencyKey: string): Hex
}

/** Holds the label that separates nonces from other values that are derived from the private key of a purse. */
const NONCE_LABEL = 'purser/authorization-nonce '

/**
 * Returns a signer that uses the private key of a purse without revealing it. @throws {Error} if the private key is
 * missing.
 */
export async function purseSigner(
  db: Queryable,
  keyring: Keyring,
  { projectId, address }: { projectId: string; address: string },
): Promise<PurseSigner> {
  const { rows } = await db.query<{ key_id: string; wrapped_key: Buffer; ciphertext: Buffer }>({
    name: 'find-purse-key',
    text: 'select key_id, wrapped_key, ciphertext from purse_keys where address = $1 and project_id = $2',
    values: [address, projectId],
  })
  const row = rows[0]
  if (row === undefined) throw new Error('the key of the purse is not there')
  const sealed = { keyId: row.key_id, wrappedKey: row.wrapped_key, ciphertext: row.ciphertext }
  return {
    address: address as Address,
    async sign(digest) {
      const key = keyring.open(sealed, purseKeyContext(projectId, address))
      const privateKey: Hex = `0x${key.toString('hex')}`
      key.fill(0)
      return await sign({ hash: digest, privateKey, to: 'hex' })
    },
    nonceOf(idempotencyKey) {
      const key = keyring.open(sealed, purseKeyContext(projectId, address))
      const mac = createHmac('sha256', key)
        .update(NONCE_LABEL + idempotencyKey)
        .digest('hex')
      key.fill(0)
      return `0x${mac}`
    },
  }
}
