import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { BlobsAwayError } from '../../../shared/blobs/objectStore.ts'
import { Costs } from '../../../shared/fair/costs.ts'
import { CostTurns } from '../../../shared/fair/costTurns.ts'
import { CONCEALED, FILE_MAX_BYTES } from '../../../shared/mail/documents/document.ts'
import { kindOf } from '../../../shared/mail/documents/documentKind.ts'
import { HIDDEN_TEXT_LABEL } from '../../../shared/mail/parse/parseMail.ts'
import type { Blobs } from '../../../sql/blobs/blobs.ts'
import { LostObjectError } from '../../../sql/blobs/sealedBlob.ts'
import { endSearchable, queueReading } from '../../../sql/mail/messages/attachmentTexts.ts'
import {
  findNextSender,
  findSearched,
  giveBackTexts,
  nextTextAt,
  type PendingText,
  returnTry,
  storeSearched,
  type TextLimits,
  takePendingTexts,
} from '../../../sql/mail/messages/pendingTexts.ts'
import { recordTexts, type TextOutcome } from '../../../sql/mail/messages/recordTexts.ts'
import { ChildError, type ChildLimits, createChildren } from '../../process/child.ts'
import { patiently } from '../../queue/patiently.ts'
import type { PoolContext, Task } from '../../queue/task.ts'
import { createCalendarChildren } from './calendarChildren.ts'
import type { DocumentAnswer, DocumentRequest } from './documentMain.ts'
import { sharersOf } from './sharers.ts'

/**
 * Limits the time and memory for reading one attachment. Extracting the text of a report with 300 pages takes five
 * seconds.
 */
const LIMITS: ChildLimits = { timeMaxMs: 15_000, memoryMaxBytes: 1024 * 1024 * 1024 }
/**
 * Limits how many runs try to read one attachment. If the worker died in this many runs, the service no longer tries to
 * read the attachment.
 */
const TRIES_MAX = 3
/**
 * Limits how many jobs wait until they may read an attachment. A waiting job occupies a slot (place for a running job)
 * of the worker pool, which new mail needs. Above the limit, the job with the highest cost is queued again for a later
 * time.
 */
const WAITING_MAX = 15
const RETURN_MS = 1_000
/**
 * Sets the least time between two jobs that are queued again, so that the waiting jobs of thousands of projects do not
 * all come back at the same moment.
 */
const RETURN_GAP_MS = 50
/**
 * Sets for how many milliseconds after its start a run of the reading job takes further attachments of its project. One
 * job for many attachments saves writes: with a separate job for each attachment, PostgreSQL wrote 3 KB of WAL for an
 * attachment of one byte.
 */
const TURN_MS = 250
/**
 * Limits how many small attachments of a message a run of the reading job takes and records together. The limit in
 * characters bounds the memory for texts that are not recorded yet.
 */
const TOGETHER_MAX = 64
const TOGETHER_CHARS = 1_000_000

/**
 * Holds the settings for reading attachments. The setting `textLimits` applies to a project that has no limits of its
 * own.
 */
export type ReadingOptions = { blobs: Blobs; textLimits?: TextLimits; limits?: ChildLimits }

const NO_LIMITS: TextLimits = { bytes: null, cpuSeconds: null }

/**
 * Reads the attachments of a project. Each run reads attachments in a child process for a quarter of a second, but at
 * least one attachment. The projects and sending networks whose attachments have cost the least come first. The worker
 * reads only one attachment at a time, so that it can parse mail at the same time.
 */
export function createReadAttachments(
  { pool, log }: PoolContext,
  { blobs, textLimits = NO_LIMITS, limits = LIMITS }: ReadingOptions,
): Task<'read_attachments'> {
  const costs = new Costs()
  const turns = new CostTurns(costs, 1, { placesMax: WAITING_MAX })
  const children = createChildren<DocumentRequest, DocumentAnswer>({
    file: join(import.meta.dir, 'documentMain.ts'),
    name: 'the reader of attachments',
    limits,
  })
  const calendars = createCalendarChildren()
  let returnMs = 0

  /** Reads one attachment. @throws if the database or the object store is unreachable. */
  const read = async (projectId: string, pending: PendingText): Promise<TextOutcome> => {
    const { messageRow, attachmentId, tries, filename, contentType, stored } = pending
    const about = { messageRow, attachmentId, ...NOTHING }
    const bytes = await orLost(() => blobs.of(projectId).read(stored), tries)
    if (bytes === null) return { ...about, bytes: 0, state: 'failed', reason: 'malformed' }
    const place = { ...about, bytes: bytes.length }
    const kind = kindOf(bytes, { filename, contentType })
    if (kind === null) return { ...place, state: 'none' }
    const failed = (reason: string, cpuMs = 0): TextOutcome => ({
      ...place,
      state: 'failed',
      kind,
      reason,
      cpuMs,
    })
    if (bytes.length > FILE_MAX_BYTES) return failed('too_large')
    if (tries > TRIES_MAX) return failed('too_slow')
    try {
      const { result, cpuMs } = await (kind === 'calendar' ? calendars : children).run({
        bytes,
        filename,
        contentType,
      })
      return { ...place, ...outcomeOf(result), cpuMs }
    } catch (error) {
      if (!(error instanceof ChildError) || error.isAccident) throw error
      log.info({ messageRow, attachmentId, kind, reason: error.message }, 'attachment not read')
      return failed('too_slow', error.cpuMs)
    }
  }

  const makeSearchable = async (projectId: string, messageRow: string) => {
    const mail = await patiently(() => findSearched(pool, messageRow))
    if (mail === null) return
    try {
      const { result } = await children.run({ projectId, mail })
      if ('vector' in result) {
        const { vector } = result
        await patiently(() => storeSearched(pool, messageRow, vector))
      }
    } catch (error) {
      if (!(error instanceof ChildError) || error.isAccident) throw error
      log.info({ messageRow, reason: error.message }, 'the texts of attachments are not searchable')
    }
  }

  /**
   * Takes some attachments of one message for this job run, reads them, and records their texts. @returns the number of
   * attachments that were read.
   */
  const readSome = async (projectId: string, limit: number): Promise<number> => {
    const claim = randomUUID()
    const taken = await patiently(() => takePendingTexts(pool, projectId, { claim, limit }))
    const [first] = taken
    if (first === undefined) return 0
    const untilMs = performance.now() + TURN_MS
    const outcomes: TextOutcome[] = []
    let fault: unknown
    for (const pending of taken) {
      const chars = outcomes.reduce((sum, { text }) => sum + (text?.length ?? 0), 0)
      if (outcomes.length > 0 && (performance.now() > untilMs || chars > TOGETHER_CHARS)) break
      try {
        outcomes.push(await read(projectId, pending))
      } catch (error) {
        fault = error
        break
      }
    }
    const isBegun = outcomes.length > 0
    const rest = taken.slice(isBegun ? outcomes.length : 1)
    if (isBegun) {
      const isLast = await patiently(() => recordTexts(pool, projectId, outcomes, log))
      if (isLast) {
        await makeSearchable(projectId, first.messageRow)
        await patiently(() => endSearchable(pool, projectId, first.messageRow))
      }
      log.debug({ messageRow: first.messageRow, count: outcomes.length }, 'attachments read')
    }
    await patiently(() => giveBackTexts(pool, claim, rest))
    // If this job run has already read an attachment, the failure of the next attachment does not count as an attempt
    // yet. A later job run begins with the failed attachment and counts the attempt.
    if (isBegun) return outcomes.length
    if (isOutage(fault)) await patiently(() => returnTry(pool, projectId, claim))
    throw fault
  }

  /** Tells whether the project may read another attachment now. */
  const mayRead = async (projectId: string): Promise<boolean> => {
    const next = await patiently(() => nextTextAt(pool, projectId, textLimits))
    return next !== null && next.getTime() <= Date.now()
  }

  return async ({ projectId, messageRow }) => {
    if (messageRow !== undefined) {
      return await turns.run([projectId], () => makeSearchable(projectId, messageRow))
    }
    const next = await nextTextAt(pool, projectId, textLimits)
    if (next === null) return
    // The cost is also charged to the sending network, so that a flood of attachments to many inboxes waits behind the
    // mail of other networks.
    const sharers = sharersOf({ projectId, ...(await findNextSender(pool, projectId)) })
    const comeBack = (runAtMs: number) => {
      const priority = costs.priorityOf(sharers)
      const runAt = new Date(Math.max(runAtMs, Date.now() + RETURN_MS * (1 + priority)))
      return queueReading(pool, projectId, { runAt, priority })
    }
    if (next.getTime() > Date.now()) return await comeBack(next.getTime())
    const hadTurn = await turns.runInPlace(sharers, async () => {
      const untilMs = performance.now() + TURN_MS
      // The job run gives back the attachments that it took but did not read. These should be few. Therefore it takes
      // at most twice as many attachments as it read the last time.
      let limit = 1
      do {
        const count = await readSome(projectId, limit)
        if (count === 0) return
        limit = Math.min(2 * count, TOGETHER_MAX)
      } while (performance.now() < untilMs && (await mayRead(projectId)))
    })
    if (!hadTurn) {
      returnMs = Math.max(returnMs, Date.now() + RETURN_MS) + RETURN_GAP_MS
      return await comeBack(returnMs)
    }
    await queueReading(pool, projectId, { priority: costs.priorityOf(sharers) })
  }
}

/**
 * Returns the content that `read` reads from the object store. Returns null if the object store has lost the content
 * and this run is the last attempt. An earlier run throws an error instead, because an operator may restore the lost
 * object before the next run.
 */
async function orLost(read: () => Promise<Buffer>, tries: number): Promise<Buffer | null> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof LostObjectError && tries > TRIES_MAX) return null
    throw error
  }
}

/**
 * Tells whether the service failed before it began to read the attachment, so that the attachment is not to blame.
 */
const isOutage = (error: unknown): boolean =>
  error instanceof BlobsAwayError || (error instanceof ChildError && error.isUnstarted)

const NOTHING = {
  ...{
    kind: null,
    reason: null,
    text: null,
    omitted: [],
    codes: [],
    links: [],
    invites: [],
    label: null,
  },
  cpuMs: 0,
} satisfies Partial<TextOutcome>

type Read = Pick<
  TextOutcome,
  'state' | 'kind' | 'reason' | 'text' | 'omitted' | 'codes' | 'links' | 'invites' | 'label'
>

function outcomeOf(answer: DocumentAnswer): Read {
  if (!('outcome' in answer)) throw new ChildError('the reader of attachments gave no outcome', 0)
  const { outcome } = answer
  const { state, kind } = outcome
  if (outcome.state === 'failed') return { ...NOTHING, state, kind, reason: outcome.reason }
  const { omitted } = outcome
  const label = omitted.some((one) => CONCEALED.has(one)) ? HIDDEN_TEXT_LABEL : null
  if (outcome.state === 'none') return { ...NOTHING, state, kind, omitted, label }
  const { text, codes, links, invites } = outcome
  return { state, kind, reason: null, text, omitted, codes, links, invites, label }
}
