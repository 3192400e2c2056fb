import { popBackupCode } from '../../shared/vault/credential.ts'
import { auditInsert, auditValues, writeAudit } from '../account/audit.ts'
import type { Pool } from '../db.ts'
import { type Failed, lockCredential, refusal, type Target } from './credentials.ts'
import { openData, readVersion, sealData } from './credentialVersions.ts'
import { readingTransaction } from './failedReads.ts'

/**
 * Takes one backup code out of a credential and returns it, so that each code is used only once. The service changes
 * the current version and creates no new version, because a new version would remove the oldest stored one. The
 * function encrypts the changed version with a new data key.
 */
export async function takeBackupCode(
  pool: Pool,
  { actor, keyring, name, isOwner }: Target,
): Promise<{ kind: 'ok'; code: string; remaining: number } | Failed> {
  const entry = { action: 'vault.backup_code', subject: name }
  return readingTransaction(pool, { actor, ...entry }, async (db) => {
    const locked = await lockCredential(db, actor, name)
    const current = locked === null ? null : await readVersion(db, locked.row, locked.version)
    const withheld = locked?.reveal === 'owner' && !isOwner
    const failed: Failed | null = withheld ? { kind: 'withheld' } : refusal(current)
    const popped =
      failed === null && current !== null
        ? popBackupCode(openData(keyring, actor.projectId, name, current))
        : null
    if (locked === null || current === null || popped === null) {
      const refused: Failed = failed ?? { kind: 'refused' }
      const outcome = refused.kind === 'withheld' ? 'refused' : refused.kind
      await writeAudit(db, actor, { ...entry, outcome })
      return refused
    }
    const { data, code, remaining } = popped
    const { version } = locked
    const sealed = sealData(keyring, { projectId: actor.projectId, name, version, data })
    await db.query({
      name: 'take-backup-code',
      text: `
        with replaced as (
          update credential_versions set key_id = $3, wrapped_key = $4, ciphertext = $5
          where credential_row = $1::bigint and version = $2
        ), audited as (
          ${auditInsert(6, "'ok'")}
        )
        update credentials set last_used_at = clock_timestamp() where row = $1::bigint`,
      values: [
        locked.row,
        version,
        sealed.keyId,
        sealed.wrappedKey,
        sealed.ciphertext,
        ...auditValues(actor, entry),
      ],
    })
    return { kind: 'ok', code, remaining }
  })
}
