import { createHash } from 'node:crypto'
import { addressKey, domainOf, recipientKeys } from '../../../shared/mail/address.ts'
import { type BounceKeys, bounceAddress } from '../../../shared/mail/compose/bounceAddress.ts'
import { mailGivenUpAfter, nextMailDelayS } from '../../../shared/mail/mailRetry.ts'
import { postmasterAliases } from '../../../shared/mail/reservedAddresses.ts'
import { traced } from '../../../shared/process/tracing.ts'
import { listFullInboxes } from '../../../sql/account/projects/projectLimits.ts'
import type { Blobs } from '../../../sql/blobs/blobs.ts'
import { LostObjectError } from '../../../sql/blobs/sealedBlob.ts'
import type { KeyringSource } from '../../../sql/keyring/keyring.ts'
import { findAddresses } from '../../../sql/mail/domains/addresses.ts'
import { composedMail } from '../../../sql/mail/outbound/composedMails.ts'
import type { RecipientOutcome, RecordedOutcome } from '../../../sql/mail/outbound/mailAttempts.ts'
import type { OutboundMail } from '../../../sql/mail/outbound/outboundMails.ts'
import { SUPPRESSED } from '../../../sql/mail/outbound/writeIntents.ts'
import type { PoolContext, Task } from '../../queue/task.ts'
import { createSendBatchers, type SendBatchers } from './sendBatchers.ts'
import type { Consignment, Transport } from './transport.ts'

type SendOptions = {
  mailDomain: string
  transport: Transport
  /** Decrypts the keys with which the service signs mail. */
  keyring: KeyringSource
  /** Stores mail contents that are too large for the database. */
  blobs: Blobs
  /** Holds the keys from which the service makes the envelope senders of sent copies. */
  bounceKeys: BounceKeys
  /**
   * Holds the storage limit in bytes of a project without its own limit. If `storageBytes` is absent or null, such a
   * project has no storage limit.
   */
  storageBytes?: number | null
  /** Holds the inbox that receives the mail to the postmaster. */
  postmaster?: string | undefined
}

type Sender = PoolContext & SendOptions & { batchers: SendBatchers }

/**
 * Makes one attempt to send an outbound mail. If a recipient is an inbox of this service, the transaction that records
 * the attempt also delivers the mail. Remote recipients get the mail through the transport. A new job retries the
 * recipients whose mail was deferred. The message itself never changes between attempts.
 *
 * The outcome for each recipient is recorded as soon as it arrives, so that only recipients without an outcome are
 * tried again after a crash. While the database is unreachable, the outcome of a delivery attempt stays in memory. If
 * the same job runs again in this process, the new run waits until the outcome in memory is recorded.
 */
export const createSendMail = (context: PoolContext, options: SendOptions): Task<'send_mail'> => {
  const sender: Sender = { ...context, ...options, batchers: createSendBatchers(context.pool) }
  const running = new Map<string, Promise<void>>()
  const run = async (messageRow: string) => {
    const mail = await sender.batchers.begin.submit(messageRow)
    if (mail === null) return
    const { traceparent: parent, attempt: number } = mail
    await traced(
      'send mail',
      { kind: 'consumer', parent, attributes: { 'purser.mail.attempt': number } },
      () => attempt(sender, mail),
    )
  }
  return async ({ messageRow }) => {
    // If the pool counts as dead for a while, its jobs are released although their runs have not ended. The next run of a
    // job waits until the earlier run has ended.
    for (let other = running.get(messageRow); other !== undefined; ) {
      await other.catch(() => {})
      other = running.get(messageRow)
    }
    const current = run(messageRow).finally(() => running.delete(messageRow))
    running.set(messageRow, current)
    await current
  }
}

async function attempt(sender: Sender, mail: OutboundMail): Promise<void> {
  try {
    await tryRecipients(sender, mail)
  } catch (error) {
    if (!(error instanceof LostObjectError)) throw error
    await deferLost(sender, mail)
  }
}

/**
 * Defers all recipients without an outcome, because the object store has lost the content of the mail. An operator may
 * restore the lost object before the next attempts. Without an outcome, the mail would never count as given up.
 */
async function deferLost(sender: Sender, mail: OutboundMail): Promise<void> {
  sender.log.error({ messageRow: mail.messageRow }, 'the content of a mail is missing')
  const record = createRecorder(sender, mail, { rawId: null, localInboxes: [] })
  const outcomes = mail.due.map(
    ({ address }) => ({ address, state: 'deferred', error: LOST }) as const,
  )
  await record(settle(sender, mail, outcomes), true)
}

async function tryRecipients(sender: Sender, mail: OutboundMail): Promise<void> {
  const { local, full, unknown, remote } = await sortRecipients(
    sender,
    [sender.mailDomain, ...mail.ownDomains],
    mail.due.filter(({ suppressed }) => !suppressed).map(({ address }) => address),
  )
  let bytes: ReturnType<typeof composedMail> | undefined
  const message = () => {
    bytes ??= composedMail({ ...sender, keep: sender.batchers.keep }, mail)
    return bytes
  }
  if (mail.approvedHash !== null) {
    const kept = await message()
    if (kept === null) return
    if (!sha256(kept.bytes).equals(mail.approvedHash)) return await refuse(sender, mail)
  }
  const delivered = [...local.keys()].map(
    (address) => ({ address, state: 'sent', error: null }) as const,
  )
  const missing = unknown.map((address) => failed(address, '550 5.1.1 No such inbox'))
  const waiting = full.map((address) => ({ address, state: 'deferred', error: FULL }) as const)
  const suppressed = mail.due
    .filter((recipient) => recipient.suppressed)
    .map(({ address }) => failed(address, SUPPRESSED))
  const rawId = local.size > 0 ? ((await message())?.rawId ?? null) : null
  if (local.size > 0 && rawId === null) return
  const localInboxes = [...new Set(local.values())]
  const record = createRecorder(sender, mail, { rawId, localInboxes })
  const consignments = sender.transport.split(remote)
  let open = consignments.length
  const settled = settle(sender, mail, [...delivered, ...waiting, ...missing, ...suppressed])
  // The service records the outcomes for its own inboxes without waiting for remote mail hosts, which can take minutes.
  if (settled.length > 0 || open === 0) await record(settled, open === 0)
  const ends = await Promise.allSettled(
    consignments.map(async (consignment) => {
      let left = consignment.to.length
      const report = async (outcomes: RecordedOutcome[]) => {
        left -= outcomes.length
        const last = left === 0 && --open === 0
        await record(outcomes, last)
      }
      await send(sender, mail, consignment, { message, report })
    }),
  )
  // If the delivery to one group of recipients fails, the error is thrown only after the deliveries to all groups of
  // the mail have ended. If the error were thrown earlier, the next run of the job could start while the mail is still
  // being sent to another group.
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

/** Holds the reply with which the SMTP listener also refuses mail for a full inbox. */
const FULL = '452 4.2.2 The inbox is full'

const LOST = 'the object store has lost the content of this message'

const sha256 = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest()

/** Records a mail as failed because its bytes are not the bytes that the owner approved. */
async function refuse(sender: Sender, mail: OutboundMail): Promise<void> {
  sender.log.error({ messageRow: mail.messageRow }, 'the bytes of an approved mail have changed')
  const record = createRecorder(sender, mail, { rawId: null, localInboxes: [] })
  const outcomes = mail.due.map(({ address }) =>
    failed(address, 'not the bytes that were approved'),
  )
  await record(settle(sender, mail, outcomes), true)
}

const failed = (address: string, error: string) => ({ address, state: 'failed', error }) as const

/**
 * Records the outcomes of a delivery attempt in several SQL statements. The SQL statements run in the order in which
 * the callers requested them, because the SQL statement that ends the attempt must be committed last.
 */
function createRecorder(
  { batchers, outcomes }: Sender,
  mail: OutboundMail,
  own: { rawId: string | null; localInboxes: string[] },
) {
  let { localInboxes } = own
  let previous: Promise<unknown> = Promise.resolve()
  return async (recipients: RecordedOutcome[], last: boolean): Promise<void> => {
    const part = {
      messageRow: mail.messageRow,
      projectId: mail.projectId,
      attempt: mail.attempt,
      rawId: own.rawId,
      envelopeFrom: mail.fromAddress,
      recipients,
      localInboxes,
      last,
    }
    localInboxes = []
    const recorded = previous.then(() => outcomes.record(() => batchers.record.submit(part)))
    // If the outcomes at one mail host cannot be recorded, the outcomes at the other mail hosts must still be recorded.
    previous = recorded.catch(() => {})
    await recorded
  }
}

/**
 * When the consignment may use its lane (the queue of its destination), sends the consignment (recipients that the
 * service serves together). Reports the outcome for each recipient once, unless the message is deleted.
 */
async function send(
  sender: Sender,
  mail: OutboundMail,
  { lane, to }: Consignment,
  {
    message,
    report,
  }: {
    message: () => Promise<{ bytes: Buffer } | null>
    report: (outcomes: RecordedOutcome[]) => Promise<void>
  },
): Promise<void> {
  const turn = await sender.lanes.enter(lane, mail.projectId)
  if (!turn.granted) {
    const nextAttemptAt = new Date(Date.now() + turn.returnInMs)
    return await report(
      to.map((address) => ({ address, state: 'postponed', error: null, nextAttemptAt })),
    )
  }
  try {
    const kept = await message()
    if (kept === null) return
    const { projectId, messageId, fromAddress } = mail
    const envelopes = to.map((recipient) => ({
      from: bounceAddress(sender.bounceKeys, fromAddress, { projectId, messageId, recipient }),
      to: recipient,
    }))
    await traced(
      'SMTP send',
      { kind: 'client', attributes: { 'purser.mail.recipients': to.length } },
      () =>
        sender.transport.send({ envelopes, raw: kept.bytes }, (outcomes) =>
          report(settle(sender, mail, outcomes)),
        ),
    )
  } finally {
    turn.leave()
  }
}

/**
 * Divides recipients into inboxes of this service, full inboxes of this service, missing addresses at domains of this
 * service, and remote addresses.
 */
async function sortRecipients(sender: Sender, ownDomains: string[], addresses: string[]) {
  const isOurs = (address: string) => ownDomains.includes(domainOf(address))
  const ours = addresses.filter(isOurs)
  const aliases = postmasterAliases(sender)
  const keysOf = (address: string) =>
    recipientKeys(address).flatMap((key) => [key, ...(aliases.get(key) ?? [])])
  const live = new Set(
    ours.length === 0 ? [] : await findAddresses(sender.pool, ours.flatMap(keysOf)),
  )
  const local = new Map<string, string>()
  for (const address of ours) {
    const inbox = keysOf(address).find((key) => live.has(key))
    if (inbox !== undefined) local.set(address, addressKey(inbox))
  }
  const unknown = ours.filter((address) => !local.has(address))
  const inboxes = [...local.values()]
  const fullInboxes =
    inboxes.length === 0
      ? []
      : await listFullInboxes(sender.pool, sender.storageBytes ?? null, inboxes)
  const full = [...local.keys()].filter((address) => fullInboxes.includes(local.get(address)!))
  for (const address of full) local.delete(address)
  return {
    local,
    full,
    unknown,
    remote: addresses.filter((address) => !isOurs(address)),
  }
}

/**
 * Sets the time of the next delivery attempt for the deferred recipients. If the time limit for delivery has passed, a
 * deferred recipient becomes a failed recipient.
 */
function settle(
  { transport }: Sender,
  mail: OutboundMail,
  outcomes: readonly RecipientOutcome[],
): RecordedOutcome[] {
  const nowMs = Date.now()
  const ageS = (nowMs - mail.acceptedAt.getTime()) / 1000
  const attempts = new Map(mail.due.map((recipient) => [recipient.address, recipient.attempts]))
  return outcomes.map((outcome) => {
    if (outcome.state !== 'deferred') return { ...outcome, nextAttemptAt: null }
    const delayS = nextMailDelayS(transport.route, (attempts.get(outcome.address) ?? 0) + 1, ageS)
    if (delayS !== null) return { ...outcome, nextAttemptAt: new Date(nowMs + delayS * 1000) }
    const error = `given up after ${mailGivenUpAfter(transport.route)}: ${outcome.error}`
    return { ...outcome, state: 'failed', error, nextAttemptAt: null }
  })
}
