import { commonBounds } from '../../shared/vault/bounds/bounds.ts'
import { usedBackupCodes as usedOf, withoutUsedCodes } from '../../shared/vault/credential.ts'
import { writeAudit } from '../account/audit.ts'
import type { Pool, Queryable } from '../db.ts'
import {
  addVersion,
  type Failed,
  isOtherData,
  isWithheld,
  type Locked,
  lockCredential,
  openCurrent,
  refusal,
  type StoredCredential,
  type Target,
} from './credentials.ts'
import { boundsSince, openData, readVersion, toBounds } from './credentialVersions.ts'
import { readingTransaction } from './failedReads.ts'

/**
 * Stores an old version of a credential as the newest version. Backup codes that the old or a later version has used
 * stay marked as used. If an API key restores a version, it gets only the bounds (limits on use) that the old version
 * and all later versions have in common, so that a removed host stays forbidden. If the owner restores it, it gets the
 * bounds of the old version.
 */
export async function restoreVersion(
  pool: Pool,
  target: Target & { version: number },
): Promise<{ kind: 'ok'; credential: StoredCredential } | Failed> {
  const { actor, keyring, name, version, isOwner } = target
  const action = 'vault.restore'
  const entry = { action, subject: name, detail: `version ${version}` }
  return readingTransaction(pool, { actor, ...entry }, async (db) => {
    const locked = await lockCredential(db, actor, name)
    const old = locked === null ? null : await readVersion(db, locked.row, version)
    const failed = refusal(old)
    if (failed !== null || locked === null || old === null) {
      const kind = failed?.kind === 'expired' ? 'expired' : 'not_found'
      await writeAudit(db, actor, { ...entry, outcome: kind })
      return failed ?? { kind: 'not_found' }
    }
    const restored = openData(keyring, actor.projectId, name, old)
    const current = await openCurrent(db, target, locked)
    const usedBackupCodes = await usedSince(db, target, locked)
    const data = withoutUsedCodes(restored, { usedBackupCodes })
    const { type, metadata, expires_at: expiresAt } = old
    const bounds = isOwner ? toBounds(old) : commonBounds(await boundsSince(db, locked.row, old))
    const content = { type, data, metadata, expiresAt, ...bounds }
    const rotated = isWithheld(locked) || isOtherData(current, data)
    const { detail } = entry
    const credential = await addVersion(db, target, locked, { content, rotated, action, detail })
    return { kind: 'ok', credential }
  })
}

/** Returns the backup codes that were used in the given version of a credential or a later one. */
async function usedSince(
  db: Queryable,
  target: Target & { version: number },
  locked: Locked,
): Promise<string[]> {
  const used: string[] = []
  for (let { version } = target; version <= locked.version; version++) {
    const data = await openCurrent(db, target, { ...locked, version })
    used.push(...usedOf(data ?? {}))
  }
  return used
}
