import { type Actor, auditInsert, auditValues } from '../account/audit.ts'
import type { Queryable } from '../db.ts'

/**
 * Deletes a credential with all its versions and their data keys.
 * @returns false: no such credential.
 */
export async function deleteCredential(
  db: Queryable,
  { actor, name }: { actor: Actor; name: string },
): Promise<boolean> {
  const { rows } = await db.query<{ gone: number }>({
    name: 'delete-credential',
    text: `
      with gone as (
        delete from credentials where project_id = $1::text and name = $5::text returning row
      ), audited as (
        ${auditInsert(1, "case when exists (select from gone) then 'ok' else 'not_found' end")}
      )
      select count(*)::int as gone from gone`,
    values: auditValues(actor, { action: 'vault.delete', subject: name }),
  })
  return rows[0]!.gone === 1
}
