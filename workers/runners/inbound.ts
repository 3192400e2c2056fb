import type { ObjectStore } from '../../shared/blobs/objectStore.ts'
import type { Config } from '../../shared/config/config.ts'
import type { BounceKeys } from '../../shared/mail/compose/bounceAddress.ts'
import { createBlobs } from '../../sql/blobs/blobs.ts'
import type { TextLimits } from '../../sql/mail/messages/pendingTexts.ts'
import type { Dns } from '../mail/dns.ts'
import { createExpandEvents } from '../mail/inbound/expandEvents.ts'
import { createIndexSearch } from '../mail/inbound/indexSearch.ts'
import { createParseInbound } from '../mail/inbound/parseInbound.ts'
import { createReadAttachments } from '../mail/inbound/readAttachments.ts'
import { createReadReport } from '../mail/inbound/readReport.ts'
import type { LookUp } from '../mail/lookUp.ts'
import { createVerifyDomain } from '../mail/verifyDomain.ts'
import { createPurgeProject } from '../operations/purgeProject.ts'
import { RUNNER_CONNECTIONS } from '../queue/runnerConnections.ts'
import type { Runner } from './runner.ts'

/** Limits both the concurrent jobs of inbound mail and the concurrent inbound mails. */
const INBOUND_SLOTS = 200

/** Returns the daily limits from the settings for reading the attachments of one project. */
export const textLimits = ({ limits }: Pick<Config, 'limits'>): TextLimits => ({
  bytes: limits.dailyTextBytes,
  cpuSeconds: limits.dailyTextSeconds,
})

/** Runs the jobs that parse mail, check mail domains and remove deleted projects. */
export const inboundRunner = (options: {
  mailDomain: string
  mailHostname: string
  dns: Dns
  lookUp: LookUp
  bounceKeys: BounceKeys
  /**
   * Stores contents of mail that are too large for the database. The object store is `null` if all contents of mail
   * stay in the database.
   */
  objectStore: ObjectStore | null
  /** Holds the inbox that receives the aggregate reports and the mail to the postmaster. */
  postmaster?: string | undefined
  /** Limits the bytes and the processor time that reading the attachments of a project may take in a day. */
  textLimits?: TextLimits
}): Runner<'inbound'> => ({
  name: 'inbound',
  tasks: (context) => {
    const stores = { ...options, blobs: createBlobs(context.pool, options.objectStore) }
    return {
      ...createParseInbound(context, { ...stores, slots: INBOUND_SLOTS }),
      read_report: createReadReport(context, stores),
      read_attachments: createReadAttachments(context, stores),
      index_search: createIndexSearch(context),
      expand_events: createExpandEvents(context),
      purge_project: createPurgeProject(context),
      verify_domain: createVerifyDomain(context, options),
    }
  },
  // The pool polls every 250 ms, because an inbound mail that found no free job slot for its project is tried again
  // after this time.
  pollIntervalMs: 250,
  // Many jobs may run at once, because a job of inbound mail mostly waits for DNS answers.
  concurrency: INBOUND_SLOTS,
  connections: RUNNER_CONNECTIONS.inbound,
})
