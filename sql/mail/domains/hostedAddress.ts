import { domainOf } from '../../../shared/mail/address.ts'
import type { Queryable } from '../../db.ts'

/**
 * Tells whether this service receives, or may later receive, the mail of an address. If this service receives the mail
 * of an address, an agent with that inbox could read the mail. An address in a tenant's domain counts even before the
 * domain is verified, and even after its verification has failed.
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
