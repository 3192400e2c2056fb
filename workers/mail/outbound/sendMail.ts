import { createHash } from 'node:crypto'
import { FairTurns } from '../../../shared/fair/fairTurns.ts'
import { addressKey, domainOf, recipientKeys } from '../../../shared/mail/address.ts'
import type { BounceKeys } from '../../../shared/mail/compose/bounceAddress.ts'
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
import { sendConsignments } from './consignments.ts'
import { COUNTED_BYTES, MailMemory } from './mailMemory.ts'
import { createSendBatchers, type SendBatchers } from './sendBatchers.ts'
import type { Transport } from './transport.ts'

type SendOptions = {
  mailDomain: string
  transport: Transport
  /** Decrypts the keys with which the service signs mail. */
  keyring: KeyringSource
  /** Stores mail contents that are too large for the database. */
  blobs: Blobs
  /**
   * Holds the keys with which the service makes the envelope senders of its mail. Each recipient's copy has a separate
   * envelope sender.
   */
  bounceKeys: BounceKeys
  /**
   * Holds the storage limit in bytes of projects that have no limit of their own. If `storageBytes` is absent or null,
   * such a project has no storage limit.
   */
  storageBytes?: number | null
  /** Holds the inbox that receives the mail to the postmaster. */
  postmaster?: string | undefined
  /** Limits the memory of large mails. Only tests set this limit. */
  memory?: MailMemory
}

type Sender = PoolContext & SendOptions & { batchers: SendBatchers; composing: FairTurns }

/**
 * Makes one attempt to send an outbound mail. If a recipient is an inbox of this service, the transaction that records
 * the attempt also delivers the mail. The transport sends the mail to remote recipients. A new job retries the
 * recipients whose mail was deferred. The message itself never changes between attempts.
 *
 * The outcome for each recipient is recorded as soon as it arrives, so that only recipients without an outcome are
 * tried again after a crash. While the database is unreachable, the outcome of a delivery attempt stays in memory. If
 * the same job runs again in this process, the new run waits until the outcome in memory is recorded.
 */
export const createSendMail = (context: PoolContext, options: SendOptions): Task<'send_mail'> => {
  const sender: Sender = {
    ...context,
    ...options,
    batchers: createSendBatchers(context.pool),
    composing: new FairTurns({ total: 1, perSharer: 1 }),
  }
  const { memory = new MailMemory() } = options
  const running = new Map<string, Promise<void>>()
  const run = async (messageRow: string) => {
    const mail = await sender.batchers.begin.submit(messageRow)
    if (mail === null) return
    const { traceparent: parent, attempt: number } = mail
    const turn = memory.enter(mail.projectId, bytesOf(mail))
    if (!turn.granted) return await postpone(sender, mail, turn.returnInMs)
    try {
      await traced(
        'send mail',
        { kind: 'consumer', parent, attributes: { 'purser.mail.attempt': number } },
        () => attempt(sender, mail),
      )
    } finally {
      turn.leave()
    }
  }
  return async ({ messageRow }) => {
    // If a worker pool counts as dead for a while, other pools run its jobs again although they have not ended. The
    // next run of a job waits until the earlier run has ended.
    for (let other = running.get(messageRow); other !== undefined; ) {
      await other.catch(() => {})
      other = running.get(messageRow)
    }
    const current = run(messageRow).finally(() => running.delete(messageRow))
    running.set(messageRow, current)
    await current
  }
}

/** Estimates the bytes of the composed mail, because Base64 makes attachments longer by more than a third. */
const bytesOf = ({ storedBytes }: OutboundMail): number => Math.ceil(storedBytes * 1.4)

/**
 * Ends a delivery attempt that sends nothing, because neither the memory limit nor the lane (the queue of the
 * destination) allows this mail at present.
 */
async function postpone(sender: Sender, mail: OutboundMail, inMs: number): Promise<void> {
  const record = createRecorder(sender, mail, { rawId: null, localInboxes: [] })
  const nextAttemptAt = new Date(Date.now() + inMs)
  const outcomes = mail.due.map(
    ({ address }) => ({ address, state: 'postponed', error: null, nextAttemptAt }) as const,
  )
  await record(outcomes, true)
}

/**
 * Composes a mail, or reads its stored bytes. Large mails come one at a time, because composing takes eight times the
 * size of the mail in memory.
 */
async function inTurn<Result>(
  { composing }: Sender,
  mail: OutboundMail,
  work: () => Promise<Result>,
): Promise<Result> {
  const leave = bytesOf(mail) > COUNTED_BYTES ? await composing.enter(mail.projectId) : () => {}
  try {
    return await work()
  } finally {
    leave()
  }
}

/**
 * Returns the domains whose mail goes to inboxes of this service. A domain whose verification has failed, or a former
 * MAIL_DOMAIN, also counts while its MX records lead to this service, because other servers still deliver its mail here.
 * Its name servers may delay their answers, so each lookup needs a place in a separate lane (the queue of one
 * destination).
 * @returns the milliseconds until the next attempt if the lane (queue) of the lookups for a domain has no free place.
 */
async function ownDomainsOf(sender: Sender, mail: OutboundMail): Promise<string[] | number> {
  const { mailDomain, transport, lanes } = sender
  const own = [mailDomain, ...mail.ownDomains]
  for (const domain of transport.route === 'direct' ? mail.formerDomains : []) {
    if (own.includes(domain)) continue
    const turn = await lanes.enter(`mail exchangers of ${domain}`, mail.projectId)
    if (!turn.granted) return turn.returnInMs
    try {
      if (await transport.leadsHere(domain)) own.push(domain)
    } finally {
      turn.leave()
    }
  }
  return own
}

async function attempt(sender: Sender, mail: OutboundMail): Promise<void> {
  try {
    await tryRecipients(sender, mail)
  } catch (error) {
    if (error instanceof SupersededError) {
      return sender.log.warn(
        { messageRow: mail.messageRow },
        'the run ends: the mail is deleted, or another run sends it',
      )
    }
    if (!(error instanceof LostObjectError)) throw error
    await deferLost(sender, mail)
  }
}

/**
 * Defers all recipients without an outcome, because the object store has lost the content of the mail. An operator may
 * restore the lost object before the next attempts. Without these outcomes, the service would try the mail for ever.
 */
async function deferLost(sender: Sender, mail: OutboundMail): Promise<void> {
  sender.log.error({ messageRow: mail.messageRow }, 'the content of a mail is missing')
  const record = createRecorder(sender, mail, { rawId: null, localInboxes: [] })
  const outcomes = mail.due.map(
    ({ address }) => ({ address, state: 'deferred', error: LOST }) as const,
  )
  await record(createSettle(sender, mail)(outcomes), true)
}

async function tryRecipients(sender: Sender, mail: OutboundMail): Promise<void> {
  const settle = createSettle(sender, mail)
  const ownDomains = await ownDomainsOf(sender, mail)
  if (typeof ownDomains === 'number') return await postpone(sender, mail, ownDomains)
  const isOurs = (address: string) => ownDomains.includes(domainOf(address))
  const { local, full, unknown, remote } = await sortRecipients(
    sender,
    isOurs,
    mail.due.filter(({ suppressed }) => !suppressed).map(({ address }) => address),
  )
  let bytes: ReturnType<typeof composedMail> | undefined
  const message = () => {
    bytes ??= inTurn(sender, mail, () =>
      composedMail({ ...sender, keep: sender.batchers.keep }, mail),
    )
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
  const later = mail.later.map(({ address }) => address).filter((address) => !isOurs(address))
  const consignments = remote.length === 0 ? [] : sender.transport.split([...remote, ...later])
  const isOver = consignments.length === 0
  const settled = settle([...delivered, ...waiting, ...missing, ...suppressed])
  // The service records the outcomes for its own inboxes without waiting for remote mail hosts, which can take minutes.
  if (settled.length > 0 || isOver) await record(settled, isOver)
  const { transport, bounceKeys } = sender
  await sendConsignments(sender, consignments, {
    ...{ mail, transport, bounceKeys, message, settle },
    record: async (outcomes, last) => {
      if (!(await record(outcomes, last))) throw new SupersededError()
    },
  })
}

/**
 * Reports that a later run of the job has begun, or that the mail is deleted. Without this error, the earlier run would
 * send its remaining copies a second time after a lost connection to the database.
 */
class SupersededError extends Error {}

/** Holds the reply with which the service refuses mail for a full inbox. The SMTP listener uses the same reply. */
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
  await record(createSettle(sender, mail)(outcomes), true)
}

const failed = (address: string, error: string) => ({ address, state: 'failed', error }) as const

/**
 * Records the outcomes of a delivery attempt in several SQL statements. The statements run in the order of the calls,
 * because the statement that ends the attempt must be committed last. Returns false if the delivery attempt is no
 * longer the current one.
 */
function createRecorder(
  { batchers, outcomes }: Sender,
  mail: OutboundMail,
  own: { rawId: string | null; localInboxes: string[] },
) {
  let { localInboxes } = own
  let previous: Promise<unknown> = Promise.resolve()
  return async (recipients: RecordedOutcome[], last: boolean): Promise<boolean> => {
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
    return await recorded
  }
}

/**
 * Divides recipients into inboxes of this service, full inboxes of this service, missing addresses at domains of this
 * service, and remote addresses.
 */
async function sortRecipients(
  sender: Sender,
  isOurs: (address: string) => boolean,
  addresses: string[],
) {
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
 * Returns a function that sets the time of the next delivery attempt for deferred recipients. If the time limit for
 * delivery has passed, a deferred recipient becomes a failed recipient.
 */
function createSettle({ transport }: Sender, mail: OutboundMail) {
  const attempts = new Map(
    [...mail.due, ...mail.later].map((recipient) => [recipient.address, recipient.attempts]),
  )
  return (outcomes: readonly RecipientOutcome[]): RecordedOutcome[] => {
    const nowMs = Date.now()
    const ageS = (nowMs - mail.acceptedAt.getTime()) / 1000
    return outcomes.map((outcome) => {
      if (outcome.state !== 'deferred') return { ...outcome, nextAttemptAt: null }
      const attempt = (attempts.get(outcome.address) ?? 0) + 1
      attempts.set(outcome.address, attempt)
      const delayS = nextMailDelayS(transport.route, attempt, ageS)
      if (delayS !== null) return { ...outcome, nextAttemptAt: new Date(nowMs + delayS * 1000) }
      const error = `given up after ${mailGivenUpAfter(transport.route)}: ${outcome.error}`
      return { ...outcome, state: 'failed', error, nextAttemptAt: null }
    })
  }
}
