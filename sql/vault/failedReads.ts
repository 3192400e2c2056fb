import { BrokenSealError, UnknownMasterKeyError } from '../../shared/vault/envelope.ts'
import { type Actor, type NewAuditEntry, writeAudit } from '../account/audit.ts'
import { type Client, type Pool, transaction } from '../db.ts'

/**
 * Runs a transaction that decrypts a credential. If the decryption fails, the rollback also removes every audit entry
 * of the transaction. Therefore the function writes the entry with the outcome `failed` after the rollback.
 */
export async function readingTransaction<Result>(
  pool: Pool,
  { actor, ...entry }: Omit<NewAuditEntry, 'outcome'> & { actor: Actor },
  work: (db: Client) => Promise<Result>,
): Promise<Result> {
  try {
    return await transaction(pool, work)
  } catch (error) {
    if (error instanceof BrokenSealError || error instanceof UnknownMasterKeyError) {
      await writeAudit(pool, actor, { ...entry, outcome: 'failed' })
    }
    throw error
  }
}
