import type { Logger } from 'pino'
import { searchVector } from '../../shared/mail/search/searchTerms.ts'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import type { Running } from '../../shared/process/service.ts'
import type { Retention } from '../../shared/retention.ts'
import { deleteStaleApprovals } from '../../sql/account/approvals.ts'
import { deleteStaleRateWindows } from '../../sql/account/keys/rateWindows.ts'
import { STALE_OAUTH } from '../../sql/account/oauth/staleOAuth.ts'
import { deleteStaleSessions } from '../../sql/account/people/consoleSessions.ts'
import { requeueLostPurges } from '../../sql/account/projects/purgeProject.ts'
import { storeServiceRetention } from '../../sql/account/projects/retention.ts'
import { createPool, type Pool } from '../../sql/db.ts'
import { requeueLostDeliveries } from '../../sql/events/deliveries.ts'
import { deleteStaleEvents } from '../../sql/events/events.ts'
import { deleteForgottenWebhooks } from '../../sql/events/webhooks.ts'
import { requeueLostApprovals } from '../../sql/mail/approval/heldAnnouncements.ts'
import { forgetUnanswered, requeueExpansions } from '../../sql/mail/calendar/instances.ts'
import { requeueLostChecks } from '../../sql/mail/domains/mailDomains.ts'
import { requeueLostArrivals } from '../../sql/mail/inbound/lostParseJobs.ts'
import { forgetDeletedMessages } from '../../sql/mail/messages/deleteMail.ts'
import { requeueLostReadings } from '../../sql/mail/messages/pendingTexts.ts'
import { requeueLostMail } from '../../sql/mail/outbound/mailAttempts.ts'
import { deleteExpiredPolicies } from '../../sql/mail/outbound/mtaStsPolicies.ts'
import { requeueUnbuilt } from '../../sql/mail/search/buildSegments.ts'
import { indexMessages, listUnindexed } from '../../sql/mail/search/unindexed.ts'
import { forgetStaleReports } from '../../sql/operations/processReports.ts'
import { forgetStaleListeners } from '../../sql/operations/smtpListeners.ts'
import { deleteStaleMinutes, recordMinutes } from '../../sql/operations/statisticsHistory.ts'
import { deleteStaleHours, recordHours } from '../../sql/operations/statisticsRange.ts'
import {
  deleteOldAnswers,
  deleteOldQuotes,
  requeueLostPurchases,
} from '../../sql/purse/purchases/purchaseJobs.ts'
import { deleteSupersededJobs } from '../../sql/queue/jobs.ts'
import { releaseJobsOfDeadPools } from '../../sql/queue/workerPools.ts'
import { deleteStaleOfferCounts } from '../../sql/till/payments/funnel.ts'
import { deleteExpiredUses } from '../../sql/vault/uses.ts'
import { createRetention } from './retention.ts'

type Step = (pool: Pool, log: Logger) => Promise<unknown>

const SWEEP_MS = 2_000
const SWEEPS_PER_SEARCH = 15
const SWEEPS_PER_CLEANING = 300
const INDEXED_PER_SWEEP = 200

/** Returns a step that queues lost work again, and logs how much work was lost. */
const requeue =
  (queueLost: (pool: Pool) => Promise<number>, message: string): Step =>
  async (pool, log) => {
    const lost = await queueLost(pool)
    if (lost > 0) log.warn({ lost }, message)
  }

const SEARCHES: readonly Step[] = [
  deleteSupersededJobs,
  deleteExpiredUses,
  deleteOldAnswers,
  deleteExpiredPolicies,
  requeueLostPurges,
  requeue(requeueLostReadings, 'readers of attachments were queued again'),
  async (pool, log) => {
    const expansions = await requeueExpansions(pool)
    if (expansions > 0) log.info({ expansions }, 'events are due to be expanded')
  },
  requeue(requeueLostPurchases, 'purchases without a job were queued again'),
  requeue(requeueLostDeliveries, 'deliveries without a job were queued again'),
  requeue(requeueLostMail, 'mail without a job was queued again'),
  requeue(requeueLostApprovals, 'approval requests without a job were queued again'),
]
const CLEANINGS: readonly Step[] = [
  requeue(requeueLostArrivals, 'accepted mail without a job was queued again'),
  requeue(requeueLostChecks, 'checks of mail domains were queued again'),
  deleteOldQuotes,
  deleteStaleRateWindows,
  forgetDeletedMessages,
  forgetUnanswered,
  requeueUnbuilt,
  deleteStaleApprovals,
  deleteStaleEvents,
  deleteForgottenWebhooks,
  deleteStaleSessions,
  ...STALE_OAUTH,
  forgetStaleListeners,
  forgetStaleReports,
  deleteStaleMinutes,
  deleteStaleHours,
  deleteStaleOfferCounts,
]

/**
 * Starts the housekeeping, which releases jobs of dead worker pools and deletes old database rows. Several processes
 * may run the housekeeping at once.
 */
export function startMaintenance(databaseUrl: string, retention: Retention, log: Logger): Running {
  const pool = createPool({
    url: databaseUrl,
    size: 2,
    name: 'purser maintenance',
    log,
  })
  const removeOldRows = createRetention(pool)
  let sweeps = 0
  const stepsNow = (): Step[] => [
    // The service sums the minutes of an hour before a later step deletes these minutes, because the sums cannot be
    // computed after the deletion.
    recordMinutes,
    recordHours,
    ...(sweeps % SWEEPS_PER_SEARCH === 0 ? SEARCHES : []),
    ...(sweeps % SWEEPS_PER_CLEANING === 0
      ? [() => storeServiceRetention(pool, retention), ...CLEANINGS]
      : []),
    indexOlderMessages,
    removeOldRows,
  ]
  const sweep = async () => {
    for (const step of stepsNow()) await step(pool, log).catch(noteFailure)
    sweeps++
  }
  // A step that fails repeatedly must not prevent the later steps from running.
  const noteFailure = (error: unknown) => {
    if (isDatabaseUnavailable(error)) throw error
    log.warn({ err: error }, 'a step of the housekeeping failed; will retry')
  }
  // A step of the housekeeping may wait for a lock, for example while an operator rebuilds a table. The release of jobs
  // has its own timer, so that such a step does not delay the mail and the payments of a dead worker pool.
  const running = [createJobRelease(pool, log), sweep].map((work) =>
    repeat(work, (error) => log.warn({ err: error }, 'housekeeping failed; will retry')),
  )
  return {
    async stop() {
      await Promise.all(running.map((one) => one.stop()))
      await pool.end()
    },
  }
}

/** Returns a function that releases the jobs of dead worker pools. */
function createJobRelease(pool: Pool, log: Logger): () => Promise<void> {
  let wasAway = false
  return async () => {
    try {
      const dead = await releaseJobsOfDeadPools(pool, wasAway)
      wasAway = false
      if (dead.length > 0) log.warn({ dead }, 'jobs of dead worker pools were released')
    } catch (error) {
      wasAway ||= isDatabaseUnavailable(error)
      throw error
    }
  }
}

/** Runs a function every SWEEP_MS. Skips a run while the previous run of the function has not ended. */
function repeat(work: () => Promise<void>, onError: (error: unknown) => void): Running {
  let current: Promise<void> | null = null
  const timer = setInterval(() => {
    current ??= work()
      .catch(onError)
      .finally(() => {
        current = null
      })
  }, SWEEP_MS)
  return {
    async stop() {
      clearInterval(timer)
      await current
    },
  }
}

/**
 * Adds old messages to the search index, which were stored before the index existed. Each run of the housekeeping adds
 * a limited number of messages.
 */
async function indexOlderMessages(pool: Pool): Promise<void> {
  const older = await listUnindexed(pool, INDEXED_PER_SWEEP)
  if (older.length === 0) return
  await indexMessages(
    pool,
    older.map(({ row, projectId, filenames, cc, bcc, ...message }) => ({
      row,
      vector: searchVector(projectId, {
        ...message,
        to: [...message.to, ...cc, ...bcc],
        text: [message.text, ...filenames].join('\n'),
      }),
    })),
  )
}
