import { type Pool, transaction } from '../../db.ts'
import { notifyAddressesChanged } from '../../mail/domains/addresses.ts'
import { deleteEndpointsOfProject } from '../../till/endpoints/endpointChanges.ts'
import { revokeProjectKey } from '../keys/keys.ts'
import { queuePurge } from './purgeProject.ts'

/**
 * Deletes a project. The key, the address and the endpoints close at once. A job purges the data.
 * `for update` waits for mail that is being stored; later mail finds the project deleted.
 * @returns false: no such project.
 */
export async function deleteProject(pool: Pool, id: string): Promise<boolean> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ email_address: string }>(
      'select email_address from projects where id = $1 and deleted_at is null for update',
      [id],
    )
    if (rows[0] === undefined) return false
    await db.query('update projects set deleted_at = clock_timestamp() where id = $1', [id])
    await revokeProjectKey(db, id)
    await deleteEndpointsOfProject(db, id)
    await db.query(
      'update project_webhooks set deleted_at = clock_timestamp() where project_id = $1 and deleted_at is null',
      [id],
    )
    await queuePurge(db, id)
    await notifyAddressesChanged(db, rows[0].email_address)
    return true
  })
}
