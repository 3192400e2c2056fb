import type { ApprovalTokens } from '../../shared/approvalLink.ts'
import { addressKey } from '../../shared/mail/address.ts'
import { approvalNotice } from '../../shared/mail/compose/approvalNotice.ts'
import type { MailContent } from '../../shared/mail/compose/composeMail.ts'
import { nextMailDelayS } from '../../shared/mail/mailRetry.ts'
import { addApprovalLink } from '../../sql/account/approvalLinks.ts'
import { type Approval, findApproval } from '../../sql/account/approvals.ts'
import type { Blobs } from '../../sql/blobs/blobs.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import {
  announceHeld,
  findNotice,
  type Notice,
  recordNotice,
} from '../../sql/mail/approval/heldAnnouncements.ts'
import { decideHeld } from '../../sql/mail/approval/heldMails.ts'
import { type HeldMail, heldBytes, readHeldMails } from '../../sql/mail/approval/heldReads.ts'
import type { MailStores } from '../../sql/mail/outbound/composedMails.ts'
import { patiently } from '../queue/patiently.ts'
import type { PoolContext, Task } from '../queue/task.ts'
import type { Transport } from './outbound/transport.ts'
import { sendServiceMail } from './serviceMail.ts'

type AnnounceOptions = {
  mailDomain: string
  /** The public address of the service, for the link. */
  baseUrl: string
  transport: Transport
  keyring: KeyringSource
  /** Large contents of mail. */
  blobs: Blobs
  approvalTokens: ApprovalTokens
}

/** Composes a held mail, announces it, and mails the owner a link that decides. */
export const createAnnounceApproval =
  (context: PoolContext, options: AnnounceOptions): Task<'announce_approval'> =>
  async ({ approvalId }) => {
    const { pool } = context
    const found = await patiently(() => announce({ pool, ...options }, approvalId))
    if (found !== null) await notify({ ...context, ...options }, found.approval, found.notice)
  }

/** Announces a held mail. Null: nobody is to be notified. */
async function announce(stores: MailStores, approvalId: string) {
  const { pool } = stores
  const approval = await findApproval(pool, approvalId)
  if (approval?.state !== 'waiting') return null
  const { projectId, subject: messageId } = approval
  // From now on the bytes stay: the owner decides about these.
  if ((await heldBytes(stores, { projectId, messageId })) === null) return null
  if (!(await announceHeld(pool, approval))) return null
  const notice = await findNotice(pool, approvalId)
  return notice === null ? null : { approval, notice }
}

/** Ends a request that nobody decided in time. */
export const createExpireApproval =
  ({ pool }: PoolContext): Task<'expire_approval'> =>
  ({ approvalId }) =>
    patiently(async () => {
      const approval = await findApproval(pool, approvalId)
      if (approval?.state !== 'waiting') return
      const actor = { projectId: approval.projectId, keyPrefix: 'service', requestId: approvalId }
      await decideHeld(pool, actor, { id: approvalId, decision: { state: 'expired' } })
    })

/** Mails each approver a link of their own. */
async function notify(
  sender: PoolContext & AnnounceOptions,
  approval: Approval,
  notice: Notice,
): Promise<void> {
  const { pool, transport } = sender
  const { projectId, subject: messageId } = approval
  const mail = (await readHeldMails(pool, projectId, [messageId], 0)).get(messageId)
  if (mail === undefined) return
  const done: string[] = []
  for (const address of notice.addresses) {
    const content = await noticeFor(sender, { approval, notice, mail, address })
    if (!(await sendServiceMail(sender, content)).isDeferred) done.push(address)
  }
  const again = done.length === notice.addresses.length ? null : nextAttempt(transport, notice)
  // Without the record the mails would go out again.
  await sender.outcomes.record(() => recordNotice(pool, approval.id, { done, again }))
}

/** The time of the next attempt; null: it is given up. */
function nextAttempt({ route }: Transport, { attempts, requestedAt }: Notice): Date | null {
  const ageS = (Date.now() - requestedAt.getTime()) / 1000
  const delayS = nextMailDelayS(route, attempts + 1, ageS)
  return delayS === null ? null : new Date(Date.now() + delayS * 1000)
}

async function noticeFor(
  { pool, mailDomain, baseUrl, approvalTokens }: PoolContext & AnnounceOptions,
  {
    approval: { id, expiresAt },
    notice: { projectName, requestedAt },
    mail,
    address,
  }: { approval: Approval; notice: Notice; mail: HeldMail; address: string },
): Promise<MailContent> {
  const token = approvalTokens(id, address)
  await addApprovalLink(pool, { token, approvalId: id, address })
  return approvalNotice({
    approvalId: id,
    mailDomain,
    address: addressKey(address),
    projectName,
    subject: mail.subject,
    recipients: [...mail.to, ...mail.cc, ...mail.bcc],
    link: `${baseUrl.replace(/\/$/, '')}/approve/${token}`,
    date: requestedAt,
    expiresAt,
  })
}
