import { domainOf } from '../../../shared/mail/address.ts'
import type { Queryable } from '../../db.ts'

/**
 * Tells whether this service receives, or may later receive, the mail of an email address. An agent could read this
 * mail. A tenant's domain counts even before its verification, and after the verification has failed.
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
