import { signInMail } from '../../shared/mail/compose/signInMail.ts'
import { type SignInTokens, signInUrl } from '../../shared/people/signInLink.ts'
import { storeSignInLink } from '../../sql/account/people/consoleSessions.ts'
import {
  findSignInMail,
  recordSignInMail,
  type WantedSignInMail,
} from '../../sql/account/people/signInMails.ts'
import { type ServiceSender, sendServiceMail } from '../mail/serviceMail.ts'
import { patiently } from '../queue/patiently.ts'
import type { PoolContext, Task } from '../queue/task.ts'

type SignInOptions = Omit<ServiceSender, 'pool'> & {
  /** Holds the public address of the service. Every sign-in link begins with this public address. */
  baseUrl: string
  signInTokens: SignInTokens
}

/**
 * Mails a sign-in link to the person to whom an email address belongs. Sends no mail if the email address belongs to
 * nobody.
 */
export const createMailSignInLink =
  ({ pool, outcomes }: PoolContext, options: SignInOptions): Task<'mail_sign_in_link'> =>
  async ({ requestId }) => {
    const wanted = await patiently(() => findSignInMail(pool, requestId))
    const { isDeferred } =
      wanted === null
        ? { isDeferred: false }
        : await mailLink({ pool, ...options }, requestId, wanted)
    // If the outcome of the mail were not recorded, a retry of the job would send the mail again.
    await outcomes.record(() => recordSignInMail(pool, requestId, isDeferred))
  }

async function mailLink(
  sender: SignInOptions & ServiceSender,
  requestId: string,
  { personId, name, email, browserHash, createdAt, expiresAt }: WantedSignInMail,
) {
  const token = sender.signInTokens(requestId)
  await storeSignInLink(sender.pool, { token, personId, browserHash, email })
  const content = signInMail({
    requestId,
    mailDomain: sender.mailDomain,
    address: email,
    name,
    link: signInUrl(sender.baseUrl, token),
    date: createdAt,
    expiresAt,
  })
  return await sendServiceMail(sender, content)
}
