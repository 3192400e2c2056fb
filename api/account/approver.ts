import { domainOf, parseAddress } from '../../shared/mail/address.ts'
import { isHosted } from '../../sql/mail/domains/hostedAddress.ts'
import { badRequest } from '../http/errors.ts'
import type { Services } from '../http/services.ts'

/**
 * Checks the address that receives the links for approvals. The address may not be an inbox of this service, because an
 * agent could then approve its own mail.
 * @throws {ApiError} 400 for an invalid approver address, or for an inbox of this service.
 */
export async function checkApprover(
  { pool, config }: Services,
  address: string | null | undefined,
): Promise<void> {
  if (address == null) return
  if (parseAddress(address) === null) {
    throw badRequest('approverEmail must be one email address, such as ada@example.com, or null')
  }
  if (await isHosted(pool, config.mailDomain, address)) {
    throw badRequest(
      `approverEmail must be outside of this service: ${domainOf(address)} is its mail domain`,
    )
  }
}
