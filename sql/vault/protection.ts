import { effectiveHosts, isNarrower, type Reveal } from '../../shared/vault/allowedHosts.ts'
import { type Actor, writeAudit } from '../account/audit.ts'
import { type Pool, transaction } from '../db.ts'
import { lockCredential } from './credentials.ts'
import { readVersion } from './credentialVersions.ts'

/**
 * Changes who reads a credential, and the hosts of its current version. A project key may only narrow both: a key without
 * vault:read must not send the secret to a host of its own.
 */
export async function protectCredential(
  pool: Pool,
  target: {
    actor: Actor
    name: string
    isOwner: boolean
    allowedHosts?: readonly string[] | null
    reveal?: Reveal
  },
): Promise<'ok' | 'not_found' | 'withheld'> {
  const { actor, name, isOwner } = target
  return transaction(pool, async (db) => {
    const locked = await lockCredential(db, actor, name)
    const current = locked === null ? null : await readVersion(db, locked.row, locked.version)
    const audit = (outcome: 'ok' | 'not_found' | 'refused', detail?: string) =>
      writeAudit(db, actor, {
        action: 'vault.protect',
        subject: name,
        outcome,
        ...(detail === undefined ? {} : { detail }),
      })
    if (locked === null || current === null) {
      await audit('not_found')
      return 'not_found'
    }
    const { allowed_hosts: before, metadata } = current
    const { reveal = locked.reveal, allowedHosts: wanted = before } = target
    const hosts = effectiveHosts(wanted, metadata)
    const isWider =
      (locked.reveal === 'owner' && reveal === 'agent') ||
      !isNarrower(hosts, effectiveHosts(before, metadata))
    if (isWider && !isOwner) {
      await audit('refused')
      return 'withheld'
    }
    await db.query('update credentials set reveal = $2 where row = $1', [locked.row, reveal])
    await db.query(
      'update credential_versions set allowed_hosts = $3 where credential_row = $1 and version = $2',
      [locked.row, locked.version, wanted],
    )
    await audit('ok', `reveal ${reveal}, hosts ${hosts.join(' ') || 'none'}`)
    return 'ok'
  })
}
