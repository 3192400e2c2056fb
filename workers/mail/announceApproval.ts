import type { ApprovalTokens } from '../../shared/approvalLink.ts'
import { addressKey } from '../../shared/mail/address.ts'
import { type AskedAct, approvalNotice } from '../../shared/mail/compose/approvalNotice.ts'
import type { MailContent } from '../../shared/mail/compose/composeMail.ts'
import { nextMailDelayS } from '../../shared/mail/mailRetry.ts'
import { formatUsdc } from '../../shared/till/usdc.ts'
import { addApprovalLink } from '../../sql/account/approvalLinks.ts'
import { type Approval, findApproval } from '../../sql/account/approvals.ts'
import type { Blobs } from '../../sql/blobs/blobs.ts'
import type { Queryable } from '../../sql/db.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import {
  announceHeld,
  findNotice,
  type Notice,
  queueAnnouncement,
  recordNotice,
  recordNotified,
} from '../../sql/mail/approval/heldAnnouncements.ts'
import { decideHeld } from '../../sql/mail/approval/heldMails.ts'
import { heldBytes, readHeldMails } from '../../sql/mail/approval/heldReads.ts'
import type { MailStores } from '../../sql/mail/outbound/composedMails.ts'
import { patiently } from '../queue/patiently.ts'
import type { PoolContext, Task } from '../queue/task.ts'
import type { Transport } from './outbound/transport.ts'
import { sendServiceMail, serviceLane } from './serviceMail.ts'

/**
 * The module loads the code for purchases only when it announces the first payment, because this code takes 11 MB of
 * memory, mostly for viem.
 */
const purchases = () => import('../../sql/purse/purchases/purchases.ts')
const askedPayments = () => import('../../sql/purse/purchases/askedPayments.ts')

type AnnounceOptions = {
  mailDomain: string
  /** Holds the public address of the service. The link to the approval page begins with this public address. */
  baseUrl: string
  transport: Transport
  keyring: KeyringSource
  /** Stores mail contents that are too large for the database. */
  blobs: Blobs
  approvalTokens: ApprovalTokens
}

/**
 * Notifies the owner that a mail or a payment waits for approval. The notification mail holds a link to the page for
 * the decision. A mail that waits for approval is composed before the notification is sent.
 */
export const createAnnounceApproval =
  (context: PoolContext, options: AnnounceOptions): Task<'announce_approval'> =>
  async ({ approvalId }) => {
    const { pool } = context
    const found = await patiently(() => announce({ pool, ...options }, approvalId))
    if (found === null) return
    const { approval, notice } = found
    // The mail host of an approver may hang. Therefore a lane (the queue for one project) limits how many job slots the
    // notifications of the project take.
    const lane = serviceLane(options.transport, `notices of ${approval.projectId}`)
    const turn = await context.lanes.enter(lane, approval.projectId)
    if (!turn.granted) {
      return await patiently(() => queueAnnouncement(pool, approvalId, turn.returnInMs))
    }
    try {
      await notify({ ...context, ...options }, approval, notice)
    } finally {
      turn.leave()
    }
  }

/**
 * Sends the event about a mail that waits for approval, and finds the notification that the service must mail to the
 * owner. Returns `null` if no person must be notified about the approval request.
 */
async function announce(stores: MailStores, approvalId: string) {
  const { pool } = stores
  const approval = await findApproval(pool, approvalId)
  if (approval?.state !== 'waiting') return null
  const { projectId, subject: messageId } = approval
  if (approval.kind === 'mail') {
    // `heldBytes` fixes the bytes of the mail that waits for approval, because the owner decides about exactly these
    // bytes.
    if ((await heldBytes(stores, { projectId, messageId })) === null) return null
    if (!(await announceHeld(pool, approval))) return null
  }
  const notice = await findNotice(pool, approvalId)
  return notice === null ? null : { approval, notice }
}

/** Creates the task that ends an approval request if nobody has decided in time. */
export const createExpireApproval =
  ({ pool }: PoolContext): Task<'expire_approval'> =>
  ({ approvalId }) =>
    patiently(async () => {
      const approval = await findApproval(pool, approvalId)
      if (approval?.state !== 'waiting') return
      const actor = { projectId: approval.projectId, keyPrefix: 'service', requestId: approvalId }
      const expired = { id: approvalId, decision: { state: 'expired' } } as const
      if (approval.kind === 'mail') await decideHeld(pool, actor, expired)
      else {
        const { decidePayment } = await askedPayments()
        await decidePayment(pool, actor, expired)
      }
    })

/** Mails each approver a separate link to the approval page. */
async function notify(
  sender: PoolContext & AnnounceOptions,
  approval: Approval,
  notice: Notice,
): Promise<void> {
  const { pool, transport } = sender
  const act = await readAct(pool, approval)
  if (act === null) return
  let deferred = 0
  for (const address of notice.addresses) {
    const content = await noticeFor(sender, { approval, notice, act, address })
    // The code records each notification at once. Otherwise an error at a later address would make the service send the
    // earlier notifications again.
    if ((await sendServiceMail(sender, content)).isDeferred) deferred++
    else await sender.outcomes.record(() => recordNotified(pool, approval.id, address))
  }
  const againInMs = deferred === 0 ? null : nextAttemptInMs(transport, notice)
  await sender.outcomes.record(() => recordNotice(pool, approval.id, againInMs))
}

/** Reads the mail or payment that the owner decides about. Returns `null` if the mail or payment no longer exists. */
async function readAct(
  db: Queryable,
  { kind, projectId, subject }: Approval,
): Promise<AskedAct | null> {
  if (kind === 'mail') {
    const mail = (await readHeldMails(db, projectId, [subject], 0)).get(subject)
    if (mail === undefined) return null
    const recipients = [...mail.to, ...mail.cc, ...mail.bcc]
    return { kind, subject: mail.subject, recipients }
  }
  const { findPurchase } = await purchases()
  const purchase = await findPurchase(db, { projectId, id: subject, keyring: null })
  if (purchase?.terms == null) return null
  const { host, terms } = purchase
  return { kind, host, amountUsdc: formatUsdc(terms.amountAtomic), payTo: terms.payTo }
}

/**
 * Returns the milliseconds until the next attempt to send the notifications to the approvers. Returns `null` if the
 * service makes no further attempt to send the notifications.
 */
function nextAttemptInMs({ route }: Transport, { attempts, requestedAt }: Notice): number | null {
  const ageS = (Date.now() - requestedAt.getTime()) / 1000
  const delayS = nextMailDelayS(route, attempts + 1, ageS)
  return delayS === null ? null : delayS * 1000
}

async function noticeFor(
  { pool, mailDomain, baseUrl, approvalTokens }: PoolContext & AnnounceOptions,
  {
    approval: { id, expiresAt },
    notice: { projectName, requestedAt },
    act,
    address,
  }: { approval: Approval; notice: Notice; act: AskedAct; address: string },
): Promise<MailContent> {
  const token = approvalTokens(id, address)
  await addApprovalLink(pool, { token, approvalId: id, address })
  return approvalNotice({
    approvalId: id,
    mailDomain,
    address: addressKey(address),
    projectName,
    act,
    link: `${baseUrl.replace(/\/$/, '')}/approve/${token}`,
    date: requestedAt,
    expiresAt,
  })
}
