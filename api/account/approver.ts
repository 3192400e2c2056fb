import { domainOf, parseAddress } from '../../shared/mail/address.ts'
import { isHosted } from '../../sql/mail/domains/hostedAddress.ts'
import { badRequest } from '../http/errors.ts'
import type { Services } from '../http/services.ts'

/**
 * Returns the stored form of the address that receives the links for approvals, with its domain in lower-case ASCII. The
 * address may not be an inbox of this service, because an agent could then approve its own mail.
 * @returns undefined for an absent address, and null for no approver.
 * @throws {ApiError} 400 for an invalid approver address, or for an inbox of this service.
 */
export async function readApprover(
  { pool, config }: Services,
  given: string | null | undefined,
): Promise<string | null | undefined> {
  if (given == null) return given
  const address = parseAddress(given)
  if (address === null) {
    throw badRequest('approverEmail must be one email address, such as ada@example.com, or null')
  }
  if (await isHosted(pool, config.mailDomain, address)) {
    throw badRequest(
      `approverEmail must be outside of this service: ${domainOf(address)} is its mail domain`,
    )
  }
  return address
}
