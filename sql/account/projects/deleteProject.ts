import { type Pool, type Queryable, transaction } from '../../db.ts'
import { notifyAddressesChanged } from '../../mail/domains/addresses.ts'
import { deleteEndpointsOfProject } from '../../till/endpoints/endpointChanges.ts'
import { revokeProjectKey } from '../keys/keys.ts'
import { queuePurge } from './purgeProject.ts'

/**
 * Sets the smallest balance of a project's purse that prevents the deletion of the project: one cent. A smaller balance
 * does not count, because anybody could send a small amount to prevent the deletion of a project.
 */
const PURSE_KEPT_ATOMIC = 10_000n

/**
 * Deletes a project. From the moment of the deletion, the project's API key, address and endpoints do not work. A later
 * job deletes the data of the project. The row lock `for update` waits for those transactions that are storing mail for
 * the project. A transaction that stores mail later finds that the project is deleted. The function does not delete a
 * project with money in the purse, because nobody could move the money without the purse's private key.
 */
export async function deleteProject(
  pool: Pool,
  id: string,
): Promise<{ kind: 'ok' | 'not_found' } | { kind: 'purse_holds'; amountAtomic: bigint }> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ email_address: string }>(
      'select email_address from projects where id = $1 and deleted_at is null for update',
      [id],
    )
    if (rows[0] === undefined) return { kind: 'not_found' }
    const amountAtomic = await heldBy(db, id)
    if (amountAtomic >= PURSE_KEPT_ATOMIC) return { kind: 'purse_holds', amountAtomic }
    await db.query('update projects set deleted_at = clock_timestamp() where id = $1', [id])
    await revokeProjectKey(db, id)
    await deleteEndpointsOfProject(db, id)
    await db.query(
      'update project_webhooks set deleted_at = clock_timestamp() where project_id = $1 and deleted_at is null',
      [id],
    )
    await queuePurge(db, id)
    await notifyAddressesChanged(db, rows[0].email_address)
    return { kind: 'ok' }
  })
}

/**
 * Returns the total USDC of a project's purse (its wallet) in atomic units, according to the last known balances. The
 * total includes the present address and the retired addresses of the purse.
 */
async function heldBy(db: Queryable, projectId: string): Promise<bigint> {
  const { rows } = await db.query<{ held: string }>(
    `select coalesce(sum(balance_atomic), 0) as held from (
       select balance_atomic from purses where project_id = $1
       union all
       select balance_atomic from purse_keys where project_id = $1 and retired_at is not null) b`,
    [projectId],
  )
  return BigInt(rows[0]?.held ?? 0)
}
