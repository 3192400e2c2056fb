import { domainOf } from '../../../shared/mail/address.ts'
import type { Queryable } from '../../db.ts'

/**
 * Tells whether this service receives, or may later receive, the mail of an email address. An agent could read the mail
 * of such an email address. The function counts an address in a tenant's domain even before the domain is verified, and
 * even after the verification has failed.
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
