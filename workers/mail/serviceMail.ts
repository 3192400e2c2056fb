import type { MailContent } from '../../shared/mail/compose/composeMail.ts'
import { composeSigned } from '../../shared/mail/compose/composeSigned.ts'
import type { Pool } from '../../sql/db.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import { findDkimSigners } from '../../sql/mail/domains/dkimKeys.ts'
import { isHosted } from '../../sql/mail/domains/hostedAddress.ts'
import type { RecipientOutcome } from '../../sql/mail/outbound/mailAttempts.ts'
import type { Transport } from './outbound/transport.ts'

/** Holds the parts that send mail in the name of the service itself, such as sign-in links for people. */
export type ServiceSender = {
  pool: Pool
  mailDomain: string
  transport: Transport
  keyring: KeyringSource
}

/**
 * Returns the lane (the queue of one destination) for a mail in the name of the service. All mail to the smarthost
 * shares one lane. @param receiver names the lane if the mail goes directly to the mail hosts of its recipient.
 */
export const serviceLane = ({ route }: Transport, receiver: string): string | null =>
  route === 'direct' ? receiver : null

/**
 * Sends a mail in the name of the service to one recipient. Sends no mail to an address at a domain of this service,
 * because an agent must not read a person's link in an agent's inbox. The domain is checked for each mail, because this
 * service may have begun to serve the domain only recently.
 * @returns an object whose `isDeferred` is true if the receiving mail host asks for another delivery attempt.
 */
export async function sendServiceMail(
  { pool, mailDomain, transport, keyring }: ServiceSender,
  content: MailContent,
): Promise<{ isDeferred: boolean }> {
  const [to = ''] = content.to
  if (await isHosted(pool, mailDomain, to)) return { isDeferred: false }
  const signers = await findDkimSigners(pool, () => keyring(pool), mailDomain)
  const raw = await composeSigned(content, signers)
  let outcome: RecipientOutcome | undefined
  await transport.send({ envelopes: [{ from: '', to }], raw }, async ([first]) => {
    outcome = first
  })
  return { isDeferred: outcome?.state === 'deferred' }
}
