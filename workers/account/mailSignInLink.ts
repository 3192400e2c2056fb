import { signInMail } from '../../shared/mail/compose/signInMail.ts'
import { type SignInTokens, signInUrl } from '../../shared/people/signInLink.ts'
import { storeSignInLink } from '../../sql/account/people/consoleSessions.ts'
import {
  findSignInMail,
  queueSignInMail,
  recordSignInMail,
  type WantedSignInMail,
} from '../../sql/account/people/signInMails.ts'
import { type ServiceSender, sendServiceMail, serviceLane } from '../mail/serviceMail.ts'
import { patiently } from '../queue/patiently.ts'
import type { PoolContext, Task } from '../queue/task.ts'

type SignInOptions = Omit<ServiceSender, 'pool'> & {
  /** Holds the public address of the service. Every sign-in link begins with this public address. */
  baseUrl: string
  signInTokens: SignInTokens
}

/**
 * Mails a sign-in link to the person who owns an email address. Sends no mail if the email address belongs to nobody.
 */
export const createMailSignInLink =
  ({ pool, outcomes, lanes }: PoolContext, options: SignInOptions): Task<'mail_sign_in_link'> =>
  async ({ requestId }) => {
    const wanted = await patiently(() => findSignInMail(pool, requestId))
    // The outcome of the mail must be recorded, because a retry of the job would otherwise send the mail again.
    const record = (isDeferred: boolean) =>
      outcomes.record(() => recordSignInMail(pool, requestId, isDeferred))
    if (wanted === null) return await record(false)
    // The mail host of a person may hang. The lane (the queue for one person) limits the jobs, so that the sign-in
    // links do not take all job slots.
    const receiver = `sign-in links of ${wanted.personId}`
    const turn = await lanes.enter(serviceLane(options.transport, receiver), receiver)
    if (!turn.granted) {
      return await patiently(() => queueSignInMail(pool, requestId, turn.returnInMs))
    }
    try {
      await record((await mailLink({ pool, ...options }, requestId, wanted)).isDeferred)
    } finally {
      turn.leave()
    }
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
