import type { Reveal } from '../../shared/vault/bounds/allowedHosts.ts'
import {
  areWithin,
  BOUNDS,
  type Bounds,
  effectiveBounds,
} from '../../shared/vault/bounds/bounds.ts'
import { type Actor, writeAudit } from '../account/audit.ts'
import { type Pool, transaction } from '../db.ts'
import { lockCredential } from './credentials.ts'
import { boundsBytes, boundsOf, boundsValues, readVersion, toBounds } from './credentialVersions.ts'

/**
 * Changes the bounds (limits on use) of a credential's current version, and who may read it. A project key may only
 * narrow the bounds. Otherwise the holder of an API key without vault:read could send the secret to any host.
 */
export async function protectCredential(
  pool: Pool,
  target: {
    actor: Actor
    name: string
    isOwner: boolean
    bounds: Partial<Bounds>
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
    const { reveal = locked.reveal } = target
    const wanted = { ...toBounds(current), ...target.bounds }
    const bounds = effectiveBounds({ ...current, ...wanted })
    const isWider =
      (locked.reveal === 'owner' && reveal === 'agent') || !areWithin(bounds, boundsOf(current))
    if (isWider && !isOwner) {
      await audit('refused')
      return 'withheld'
    }
    const binds = isOwner && Object.keys(target.bounds).length > 0
    await db.query(
      'update credentials set reveal = $2, bounded_by_owner = bounded_by_owner or $3 where row = $1',
      [locked.row, reveal, binds],
    )
    await db.query(
      `update credential_versions set allowed_hosts = $3, allowed_methods = $4, allowed_paths = $5, placement = $6,
         bounds_bytes = ${boundsBytes(['$3::text[]', '$4::text[]', '$5::text[]', '$6::text[]'])}
       where credential_row = $1 and version = $2`,
      [locked.row, locked.version, ...boundsValues(wanted)],
    )
    const shown = BOUNDS.filter(
      (bound) => bound === 'allowedHosts' || target.bounds[bound] !== undefined,
    ).map((bound) => `, ${bound} ${bounds[bound].join(' ') || 'none'}`)
    await audit('ok', `reveal ${reveal}${shown.join('')}`)
    return 'ok'
  })
}
