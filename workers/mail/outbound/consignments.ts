import { type BounceKeys, bounceAddress } from '../../../shared/mail/compose/bounceAddress.ts'
import { isDatabaseUnavailable } from '../../../shared/process/databaseAway.ts'
import { createPause, type Pause } from '../../../shared/process/pause.ts'
import { traced } from '../../../shared/process/tracing.ts'
import { LostObjectError } from '../../../sql/blobs/sealedBlob.ts'
import type { RecipientOutcome, RecordedOutcome } from '../../../sql/mail/outbound/mailAttempts.ts'
import { findStillDue, type OutboundMail } from '../../../sql/mail/outbound/outboundMails.ts'
import type { PoolContext } from '../../queue/task.ts'
import { allOf } from './smtpOutcome.ts'
import type { Consignment, Transport } from './transport.ts'

type Parts = {
  mail: OutboundMail
  transport: Transport
  bounceKeys: BounceKeys
  /** Returns the bytes of the mail, or null if the mail is deleted. */
  message: () => Promise<{ bytes: Buffer } | null>
  /** Sets the times of the next delivery attempts for deferred recipients. */
  settle: (outcomes: readonly RecipientOutcome[]) => RecordedOutcome[]
  /**
   * Records the outcomes of one part of the delivery attempt. The call for the last part also queues the next delivery
   * attempt.
   */
  record: (outcomes: RecordedOutcome[], last: boolean) => Promise<void>
}

/** Tells the sender of a mail that the fault lies with this service, and not with the remote mail host. */
const OWN_FAULT = '451 4.3.0 The service could not send this copy now'

/**
 * Sends the consignments (groups of recipients that the service serves together) of one mail at the same time. A slow
 * mail host delays only its own consignment. If deferred recipients of another consignment become due again meanwhile,
 * the same run tries them again. The delivery attempt ends with the last consignment.
 * @param consignments may contain recipients of `mail.later`, whose next attempts are due later.
 */
export async function sendConsignments(
  context: PoolContext,
  consignments: readonly Consignment[],
  parts: Parts,
  { runMaxMs = RUN_MAX_MS } = {},
): Promise<void> {
  const laterAt = new Map(parts.mail.later.map(({ address, at }) => [address, at.getTime()]))
  const split = consignments.map(({ lane, to }) => ({
    ...{ lane, to: to.filter((address) => !laterAt.has(address)) },
    later: to.flatMap((address) => {
      const atMs = laterAt.get(address)
      return atMs === undefined ? [] : [{ address, atMs }]
    }),
  }))
  const run = new Run(split.filter(({ to }) => to.length > 0).length, runMaxMs)
  const ends = await Promise.allSettled(
    split.map((consignment) => sendUntilOver(context, run, consignment, parts)),
  )
  // If the delivery to one group of recipients fails, the error is thrown only after the deliveries to all groups of
  // the mail have ended. If the error were thrown earlier, the next run of the job could start while the mail is still
  // being sent to another group.
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

/**
 * Sets the milliseconds after which a run of the sending job makes no further delivery attempts. After four hours, the
 * job queue gives a running job to another process, which would then send the mail at the same time.
 */
const RUN_MAX_MS = 60 * 60_000

/**
 * Counts the consignments (groups of recipients that the service serves together) that are being sent. The other
 * consignments of the mail have ended or wait.
 */
class Run {
  #active: number
  /** Maps the recipients that wait for their lane (the queue of their destination) to their next attempts. */
  readonly postponed = new Map<string, Date>()
  readonly #pauses = new Set<Pause>()
  readonly #endsAtMs: number

  constructor(active: number, maxMs: number) {
    this.#active = active
    this.#endsAtMs = Date.now() + maxMs
  }

  /** Tells whether only one consignment (a group of recipients that the service serves together) is being sent. */
  get isAlone(): boolean {
    return this.#active === 1
  }

  get isOver(): boolean {
    return this.#active === 0
  }

  leave(): void {
    this.#active--
    if (this.isOver) for (const pause of this.#pauses) pause.wake()
  }

  /**
   * Returns the outcomes of the recipients that wait for a place in their lane (the queue of their destination). The
   * last part of the delivery attempt records these outcomes.
   */
  postponements(): RecordedOutcome[] {
    return [...this.postponed].map(([address, nextAttemptAt]) => ({
      address,
      state: 'postponed',
      error: null,
      nextAttemptAt,
    }))
  }

  /**
   * Waits until a given time, or until this run of the sending job is over. @returns false if the run is over, or would
   * last too long.
   */
  async waitUntil(atMs: number): Promise<boolean> {
    if (this.isOver || atMs > this.#endsAtMs) return false
    const pause = createPause()
    this.#pauses.add(pause)
    await pause.sleep(Math.max(0, atMs - Date.now()))
    this.#pauses.delete(pause)
    if (this.isOver) return false
    this.#active++
    return true
  }
}

type Later = { address: string; atMs: number }

async function sendUntilOver(
  context: PoolContext,
  run: Run,
  { lane, to, later: notDue }: Consignment & { later: Later[] },
  parts: Parts,
): Promise<void> {
  const tried = to.length === 0 ? [] : await sendOnce(context, run, { lane, to }, parts, false)
  let later = [...notDue, ...tried]
  while (later.length > 0) {
    const nextMs = Math.min(...later.map(({ atMs }) => atMs))
    if (!(await run.waitUntil(nextMs))) return
    const isDue = ({ atMs }: Later) => atMs <= Math.max(nextMs, Date.now())
    const due = later.filter(isDue).map(({ address }) => address)
    const rest = later.filter((one) => !isDue(one))
    later = [...rest, ...(await sendOnce(context, run, { lane, to: due }, parts, true))]
  }
}

/**
 * Sends the consignment as soon as its lane (the queue of its destination) allows this. Reports the outcome for each
 * recipient once, unless the message is deleted. @returns the recipients that need another attempt.
 */
async function sendOnce(
  context: PoolContext,
  run: Run,
  { lane, to }: Consignment,
  { mail, transport, bounceKeys, message, settle, record }: Parts,
  isRepeated: boolean,
): Promise<Later[]> {
  const open = new Set(to)
  const later: Later[] = []
  let hasLeft = false
  const leave = () => {
    if (!hasLeft) run.leave()
    hasLeft = true
  }
  const report = async (outcomes: RecordedOutcome[]) => {
    for (const { address, nextAttemptAt } of outcomes) {
      open.delete(address)
      if (nextAttemptAt !== null) later.push({ address, atMs: nextAttemptAt.getTime() })
    }
    const isLast = open.size === 0 && run.isAlone
    if (open.size === 0) leave()
    await record(isLast ? [...outcomes, ...run.postponements()] : outcomes, isLast)
  }
  const turn = await context.lanes.enter(lane, mail.projectId)
  try {
    if (!turn.granted) {
      const nextAttemptAt = new Date(Date.now() + turn.returnInMs)
      for (const address of to) run.postponed.set(address, nextAttemptAt)
      if (run.isAlone) {
        leave()
        await record(run.postponements(), true)
      }
      return to.map((address) => ({ address, atMs: nextAttemptAt.getTime() }))
    }
    for (const address of to) run.postponed.delete(address)
    const due = isRepeated ? await findStillDue(context.pool, mail, to) : to
    const kept = due.length === 0 ? null : await message()
    if (kept === null) {
      const isLast = isRepeated && run.isAlone
      leave()
      if (isLast) await record(run.postponements(), true)
      return later
    }
    for (const address of to) if (!due.includes(address)) open.delete(address)
    const { projectId, messageId, fromAddress } = mail
    const envelopes = due.map((recipient) => ({
      from: bounceAddress(bounceKeys, fromAddress, { projectId, messageId, recipient }),
      to: recipient,
    }))
    await traced(
      'SMTP send',
      { kind: 'client', attributes: { 'purser.mail.recipients': due.length } },
      () =>
        sendSafely(context, { envelopes, raw: kept.bytes }, transport, (outcomes) =>
          report(settle(outcomes)),
        ),
    )
    return later
  } finally {
    leave()
    if (turn.granted) turn.leave()
  }
}

/**
 * Sends copies of a mail. If the transport throws an error, the recipients without an outcome are deferred, so that the
 * time limit for delivery applies to them. Otherwise the service would try for ever to send a mail that always causes
 * an error.
 */
async function sendSafely(
  { log }: PoolContext,
  outgoing: Parameters<Transport['send']>[0],
  transport: Transport,
  report: (outcomes: RecipientOutcome[]) => Promise<void>,
): Promise<void> {
  const open = new Set(outgoing.envelopes.map(({ to }) => to))
  let isUnrecorded = false
  try {
    await transport.send(outgoing, async (outcomes) => {
      for (const { address } of outcomes) open.delete(address)
      await report(outcomes).catch((error) => {
        isUnrecorded = true
        throw error
      })
    })
  } catch (error) {
    if (isUnrecorded || isDatabaseUnavailable(error) || error instanceof LostObjectError) {
      throw error
    }
    log.error({ err: error }, 'a copy of a mail could not be sent')
    if (open.size > 0) await report(allOf([...open], 'deferred', OWN_FAULT))
  }
}
