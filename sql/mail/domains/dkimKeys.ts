import { createPrivateKey, generateKeyPair, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { type DkimSigner, dkimRecord } from '../../../shared/mail/compose/dkim.ts'
import type { Keyring, Sealed, SecretContext } from '../../../shared/vault/envelope.ts'
import type { Queryable } from '../../db.ts'

/**
 * Sets the length of a DKIM key in bits. RFC 8301 §3.2 requires at least 1024 bits and recommends 2048 bits. The key
 * must not be longer, because programs that verify DKIM need not support more than 2048 bits.
 */
const KEY_BITS = 2048
/**
 * Sets the maximum number of signing keys of a domain. The two newest DKIM keys of a domain both sign its mail.
 * Therefore DNS always has the record of at least one signing key while a key is replaced.
 */
export const SIGNING_KEYS = 2

/** Holds the public part of a DKIM key. */
export type DkimKey = {
  domain: string
  selector: string
  /** Holds the TXT record that DNS must have at `SELECTOR._domainkey.DOMAIN`. */
  record: string
}

/**
 * Returns the encryption context (associated data) of a DKIM private key. The encryption context names no project,
 * because a DKIM key belongs to a domain.
 */
export const dkimContext = (domain: string, selector: string): SecretContext => ({
  purpose: 'dkim-key',
  projectId: '',
  name: `${selector}._domainkey.${domain}`,
  version: 1,
})

/**
 * Creates a DKIM key for a domain. The new DKIM key signs the mail of the domain in addition to the previous DKIM key.
 */
export async function createDkimKey(
  db: Queryable,
  keyring: Keyring,
  domain: string,
): Promise<DkimKey> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: KEY_BITS,
  })
  const day = new Date().toISOString().slice(0, 10).replaceAll('-', '')
  const selector = `p${day}${randomBytes(2).toString('hex')}`
  const record = dkimRecord(publicKey)
  const secret = privateKey.export({ type: 'pkcs8', format: 'der' })
  const { keyId, wrappedKey, ciphertext } = keyring.seal(secret, dkimContext(domain, selector))
  await db.query(
    `insert into dkim_keys (domain, selector, record, key_id, wrapped_key, ciphertext)
     values ($1, $2, $3, $4, $5, $6)`,
    [domain, selector, record, keyId, wrappedKey, ciphertext],
  )
  return { domain, selector, record }
}

type KeyRow = {
  domain: string
  selector: string
  key_id: string
  wrapped_key: Buffer
  ciphertext: Buffer
}

/**
 * Returns the DKIM signing keys of a domain. @throws {UnknownMasterKeyError} if the process lacks the master key of a
 * DKIM key. @throws {BrokenSealError} if a DKIM key cannot be decrypted.
 */
export async function findDkimSigners(
  db: Queryable,
  keyring: () => Promise<Keyring>,
  domain: string,
): Promise<DkimSigner[]> {
  const { rows } = await db.query<KeyRow>({
    name: 'find-dkim-signers',
    text: `select domain, selector, key_id, wrapped_key, ciphertext from dkim_keys
           where domain = $1 order by row desc limit ${SIGNING_KEYS}`,
    values: [domain],
  })
  if (rows.length === 0) return []
  const opener = await keyring()
  return rows.map((row) => {
    const sealed: Sealed = {
      keyId: row.key_id,
      wrappedKey: row.wrapped_key,
      ciphertext: row.ciphertext,
    }
    const secret = opener.open(sealed, dkimContext(row.domain, row.selector))
    const privateKey = createPrivateKey({ key: secret, type: 'pkcs8', format: 'der' })
    secret.fill(0)
    return { domain: row.domain, selector: row.selector, privateKey }
  })
}

/** Deletes all DKIM keys of a domain, or only the DKIM key with one selector. */
export async function deleteDkimKeys(
  db: Queryable,
  domain: string,
  selector?: string,
): Promise<void> {
  await db.query('delete from dkim_keys where domain = $1 and selector = coalesce($2, selector)', [
    domain,
    selector ?? null,
  ])
}

/** Tells whether any domain has a DKIM key. */
export async function hasDkimKeys(db: Queryable): Promise<boolean> {
  const { rowCount } = await db.query('select from dkim_keys limit 1')
  return rowCount === 1
}

/** Lists the public parts of a domain's DKIM signing keys, the newest first. */
export async function listDkimKeys(db: Queryable, domain: string): Promise<DkimKey[]> {
  const { rows } = await db.query<DkimKey>(
    `select domain, selector, record from dkim_keys where domain = $1
     order by row desc limit ${SIGNING_KEYS}`,
    [domain],
  )
  return rows
}
