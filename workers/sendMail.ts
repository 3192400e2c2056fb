import { createHash } from 'node:crypto'
import { addressKey, domainOf, recipientKeys } from '../shared/address.ts'
import { composeMail } from '../shared/composeMail.ts'
import { nextMailDelayS } from '../shared/mailRetry.ts'
import { findAddresses } from '../sql/addresses.ts'
import { listSentAttachments } from '../sql/attachments.ts'
import type { Pool } from '../sql/db.ts'
import {
  beginAttempt,
  keepComposed,
  type OutboundMail,
  type RecipientOutcome,
  recordAttempt,
} from '../sql/outbound.ts'
import { readRawMail } from '../sql/rawMails.ts'
import type { Task, TaskDeps } from './pool.ts'

/**
 * Makes one attempt to send a message: inboxes of ours get it in the transaction that records the attempt, all others
 * through the transport. What failed for now is tried again later by a new job; the message itself never changes.
 */
export const sendMail: Task<'send_mail'> = async ({ messageRow }, deps) => {
  const mail = await beginAttempt(deps.pool, messageRow)
  if (mail === null) return
  const { rawId, bytes } = await composed(deps.pool, mail)
  const { local, unknown, remote } = await sortRecipients(deps, mail.pending)
  const remoteOutcomes =
    remote.length === 0
      ? []
      : await deps.transport.send({ from: mail.fromAddress, to: remote, raw: bytes })
  const recipients = [
    ...[...local.keys()].map((address) => ({ address, state: 'sent' as const, error: null })),
    ...unknown.map((address) => ({
      address,
      state: 'failed' as const,
      error: '550 5.1.1 No such inbox',
    })),
    ...remoteOutcomes,
  ]
  await recordAttempt(deps.pool, {
    messageRow,
    attempt: mail.attempt,
    rawId,
    envelopeFrom: mail.fromAddress,
    localInboxes: [...new Set(local.values())],
    ...schedule(mail, recipients),
  })
}

async function composed(pool: Pool, mail: OutboundMail): Promise<{ rawId: string; bytes: Buffer }> {
  if (mail.rawId !== null) return { rawId: mail.rawId, bytes: await readRawMail(pool, mail.rawId) }
  const attachments = await listSentAttachments(pool, mail.messageRow)
  const bytes = await composeMail({ ...mail, attachments, date: mail.createdAt })
  return keepComposed(pool, {
    messageRow: mail.messageRow,
    sourceKey: sourceKey(mail.messageId),
    bytes,
  })
}

/** A UUID made from the Message-ID, so that composing twice cannot store twice. */
function sourceKey(messageId: string): string {
  const hex = createHash('sha256').update(messageId).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** Which recipients are inboxes of ours (by the address named), which would be but do not exist, and which are elsewhere. */
async function sortRecipients({ pool, mailDomain }: TaskDeps, addresses: string[]) {
  const ours = addresses.filter((address) => domainOf(address) === mailDomain)
  const live = new Set(
    ours.length === 0 ? [] : await findAddresses(pool, ours.flatMap(recipientKeys)),
  )
  const local = new Map<string, string>()
  for (const address of ours) {
    const inbox = recipientKeys(address).find((key) => live.has(key))
    if (inbox !== undefined) local.set(address, addressKey(inbox))
  }
  return {
    local,
    unknown: ours.filter((address) => !local.has(address)),
    remote: addresses.filter((address) => domainOf(address) !== mailDomain),
  }
}

/** When to try again whoever was deferred; past the limit, deferred becomes failed. */
function schedule(mail: OutboundMail, recipients: RecipientOutcome[]) {
  if (!recipients.some(({ state }) => state === 'deferred'))
    return { recipients, nextAttemptAt: null }
  const nowMs = Date.now()
  const delayS = nextMailDelayS(mail.attempt, (nowMs - mail.acceptedAt.getTime()) / 1000)
  if (delayS !== null) return { recipients, nextAttemptAt: new Date(nowMs + delayS * 1000) }
  const givenUp = recipients.map((recipient) =>
    recipient.state === 'deferred'
      ? { ...recipient, state: 'failed' as const, error: `given up after 24 h: ${recipient.error}` }
      : recipient,
  )
  return { recipients: givenUp, nextAttemptAt: null }
}
