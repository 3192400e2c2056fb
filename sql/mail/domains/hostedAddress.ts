import { domainOf, parseAnyAddress, recipientKeys } from '../../../shared/mail/address.ts'
import type { Queryable } from '../../db.ts'

/**
 * Tells whether this service receives, or may later receive, the mail of an email address. An agent could read the mail
 * of such an address. A tenant's domain counts even before its verification, and after the verification has failed. An
 * inbox at a former MAIL_DOMAIN counts too, because the service still receives its mail. The quotes of a local part that
 * needs none do not count.
 */
export async function isHosted(
  db: Queryable,
  mailDomain: string,
  address: string,
): Promise<boolean> {
  const domain = domainOf(address)
  if (domain === mailDomain) return true
  const { rowCount } = await db.query(
    `select from mail_domains where domain = $1
     union all select from projects where email_address = any ($2) limit 1`,
    [domain, recipientKeys(parseAnyAddress(address) ?? address)],
  )
  return rowCount === 1
}
