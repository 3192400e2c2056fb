import { type Pool, transaction } from '../../db.ts'
import { DELETED } from '../../events/webhooks.ts'
import { notifyAddressesChanged } from '../../mail/domains/addresses.ts'
import { purseMoney } from '../../purse/purseMoney.ts'
import { deleteEndpointsOfProject } from '../../till/endpoints/endpointChanges.ts'
import { type Actor, ORGANIZATION, writeAudit } from '../audit.ts'
import { revokeProjectKey } from '../keys/keys.ts'
import { queuePurge } from './purgeProject.ts'

/**
 * Deletes a project, and records who did so in the audit log of the organization, because the audit log of the project
 * is deleted too. From this moment, the project's API key, address and endpoints do not work. A later job deletes the
 * data. The row lock `for update` waits for transactions that are storing mail for the project. Later transactions find
 * that the project is deleted. If the project's purse has money or may still get money, the function refuses, because
 * nobody could move the money without the purse's private key.
 * @param actor is null if the caller records the deletion itself.
 */
export async function deleteProject(
  pool: Pool,
  id: string,
  actor: Omit<Actor, 'projectId'> | null,
): Promise<
  { kind: 'ok' | 'not_found' } | { kind: 'purse_holds' | 'purse_awaits'; amountAtomic: bigint }
> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ email_address: string }>(
      'select email_address from projects where id = $1 and deleted_at is null for update',
      [id],
    )
    if (rows[0] === undefined) return { kind: 'not_found' }
    const { heldAtomic, awaitedAtomic } = await purseMoney(db, id)
    if (heldAtomic > 0n) return { kind: 'purse_holds', amountAtomic: heldAtomic }
    if (awaitedAtomic > 0n) return { kind: 'purse_awaits', amountAtomic: awaitedAtomic }
    await db.query('update projects set deleted_at = clock_timestamp() where id = $1', [id])
    await revokeProjectKey(db, id)
    await deleteEndpointsOfProject(db, id)
    await db.query(
      `update project_webhooks set ${DELETED} where project_id = $1 and deleted_at is null`,
      [id],
    )
    await queuePurge(db, id)
    if (actor !== null) {
      const entry = { action: 'project.delete', subject: id, outcome: 'ok' } as const
      await writeAudit(db, { ...actor, projectId: ORGANIZATION }, entry)
    }
    await notifyAddressesChanged(db, rows[0].email_address)
    return { kind: 'ok' }
  })
}
