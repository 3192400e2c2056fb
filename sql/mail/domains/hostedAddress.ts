import { domainOf } from '../../../shared/mail/address.ts'
import type { Queryable } from '../../db.ts'

/**
 * Tells whether this service receives, or may later receive, the mail of an address. If this service receives that
 * mail, an agent could read the mail of the address in its inbox. A tenant's domain counts even before it is verified,
 * and after its verification has failed.
 */
export async function isHosted(
  db: Queryable,
  mailDomain: string,
  address: string,
): Promise<boolean> {
  const domain = domainOf(address)
  if (domain === mailDomain) return true
  const { rowCount } = await db.query('select from mail_domains where domain = $1', [domain])
  return rowCount !== 0
}
