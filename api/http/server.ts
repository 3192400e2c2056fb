import type { Logger } from 'pino'
import { pageSeals } from '../../shared/approvalLink.ts'
import { openStoreOf } from '../../shared/blobs/objectStore.ts'
import type { Config } from '../../shared/config/config.ts'
import { createBatcher } from '../../shared/process/batcher.ts'
import { serve } from '../../shared/process/serve.ts'
import type { Running } from '../../shared/process/service.ts'
import { deriveKey } from '../../shared/vault/envelope.ts'
import { macsFor } from '../../shared/vault/macs.ts'
import { authenticateAll, type WantedKey } from '../../sql/account/keys/keys.ts'
import { EXPORTS_MAX } from '../../sql/account/projects/exportProject.ts'
import { createBlobs } from '../../sql/blobs/blobs.ts'
import { createPool } from '../../sql/db.ts'
import { createKeyringSource, masterKeys } from '../../sql/keyring/keyring.ts'
import { findMessages, type WantedMessage } from '../../sql/mail/messages/messages.ts'
import { acceptIntents } from '../../sql/mail/outbound/acceptIntents.ts'
import { readSendPolicies, type WantedRecipients } from '../../sql/mail/outbound/recipientPolicy.ts'
import { intentBytes, type SendIntent } from '../../sql/mail/outbound/sendIntents.ts'
import { UNREACHABLE } from '../../sql/operations/replica.ts'
import { type CredentialRead, readCredentials } from '../../sql/vault/credentialReads.ts'
import { createExports } from '../account/exports.ts'
import { createApp } from '../app.ts'
import { startEventFeed } from '../events/eventFeed.ts'
import { RecentReviews } from '../mail/approval/recentReviews.ts'
import { createMetrics } from '../operations/metrics.ts'
import { createOfferKey } from '../till/payments/challenge.ts'
import { OfferCounts } from '../till/payments/offerCounts.ts'
import { createTillBatchers } from '../till/payments/tillBatchers.ts'
import { ApiError, errorResponse } from './errors.ts'
import { sendLargeAtOnce } from './finish.ts'
import { MCP_PATH } from './gate.ts'
import { type GrowingAnswer, HeldAnswers } from './limits/heldAnswers.ts'
import { LoopTime } from './limits/loopTime.ts'
import { createSearches } from './limits/searches.ts'
import { StrangerReads } from './limits/strangerReads.ts'
import { UsageRecorder } from './limits/usage.ts'
import { primaryReads, replicaReads } from './reads.ts'
import { changerOf, isStranger, mayWrite, projectOf, readerOf, stateOf } from './requestState.ts'
import { startWaiters } from './waiters.ts'

/**
 * Sets the maximum number of bytes of a request body that Bun accepts. It is above the body limit of every route.
 * Therefore a client gets this service's error response instead of Bun's.
 */
const SOCKET_BODY_MAX_BYTES = 64 * 1024 * 1024
/**
 * Sets after how many seconds Bun closes a connection on which no bytes arrive or leave, even if a handler still runs.
 * The time must exceed 120 seconds (SETTLEMENT_WAIT_MS), because a redeem call (the settlement of a payment) may send
 * no byte for so long.
 */
export const IDLE_TIMEOUT_S = 150
const DRAIN_POLL_MS = 20
/**
 * Sets for how many milliseconds clients may still read large responses after the process begins to stop. The whole
 * stop of the process may last longer (shared/process/service.ts).
 */
const READ_ON_MS = 12_000
/**
 * Sets the maximum number of milliseconds of one SQL statement of an API request. It is short, because an API caller
 * waits for every statement.
 */
const STATEMENT_TIMEOUT_MS = 10_000

/** Sets the maximum number of milliseconds of one SQL statement of a search. */
const SEARCH_TIMEOUT_MS = 3_000
/**
 * Sets the number of parts into which the database connections are divided. One part serves only the authentication of
 * requests, and another part serves only searches.
 */
const POOL_PART = 5

/**
 * Sets the maximum number of message reads that the service combines in one database query, because a message takes up
 * to some megabytes, and all messages of one database query must fit into memory.
 */
const MESSAGE_BATCHING = { batchMax: 16, parallel: 3 }

/**
 * Sets how many outgoing mails the service writes to the database in one batch. The service collects one batch while
 * another batch commits. With 64 callers, PostgreSQL then uses only a third of the CPU time for each mail. A new batch
 * starts even if an earlier batch is slow or waits for a lock.
 */
const SEND_BATCHING = {
  batchMax: 200,
  parallel: 2,
  lateMs: 50,
  weight: { of: intentBytes, max: 8 * 1024 * 1024 },
}

/**
 * Sets how the service combines look-ups of API keys and reads of the vault in batches. It collects one batch while
 * another batch runs.
 */
const KEY_BATCHING = { batchMax: 200, parallel: 2 }

/** Describes a running process of the HTTP API. */
export type ApiServer = Running & { port: number }

/**
 * Starts the HTTP API.
 * @param parts.loopTime limits the costly reads of each project.
 */
export function startApi(
  config: Config,
  databaseUrl: string,
  log: Logger,
  { loopTime = new LoopTime() } = {},
): ApiServer {
  const part = Math.max(1, Math.floor(config.databasePoolSize / POOL_PART))
  const poolOf = (
    use: string,
    size: number,
    statementTimeoutMs = STATEMENT_TIMEOUT_MS,
    url = databaseUrl,
  ) => createPool({ url, size, name: `purser api${use}`, statementTimeoutMs, log })
  const pool = poolOf('', config.databasePoolSize - 2 * part)
  const gatePool = poolOf(' (gate)', part)
  const keys = createBatcher({
    ...KEY_BATCHING,
    run: (wanted: WantedKey[]) => authenticateAll(gatePool, wanted, reads),
  })
  const messages = createBatcher({
    ...MESSAGE_BATCHING,
    run: (wanted: WantedMessage[]) => findMessages(pool, wanted),
  })
  const credentials = createBatcher({
    ...KEY_BATCHING,
    run: (reads: CredentialRead[]) => readCredentials(pool, 'vault.get', reads),
  })
  const searchPool = poolOf(' (search)', part, SEARCH_TIMEOUT_MS)
  const searches = createSearches(searchPool, part)
  const primary = { pool, searches }
  const replicaUrl = config.databaseReplicaUrl
  const replicaPools =
    replicaUrl === null
      ? []
      : [
          poolOf(' (replica)', part * 2, STATEMENT_TIMEOUT_MS, replicaUrl),
          poolOf(' (replica search)', part, SEARCH_TIMEOUT_MS, replicaUrl),
        ]
  const [replicaPool, replicaSearchPool] = replicaPools
  const reads =
    replicaPool === undefined || replicaSearchPool === undefined
      ? primaryReads(primary)
      : replicaReads({
          primary,
          replica: { pool: replicaPool, searches: createSearches(replicaSearchPool, part) },
          // Reads for a person at the console go to the primary, so that the person sees each change at once. This
          // includes changes that an agent or an approval link has made. The reads of a request that writes also go to
          // the primary, so that the request sees its own changes.
          writtenTo: (request) => {
            const { session, writtenTo } = stateOf(request)
            return session === null && !mayWrite(request) ? writtenTo : UNREACHABLE
          },
          log,
        })
  const usage = new UsageRecorder(pool, log)
  const offerCounts = new OfferCounts(pool, log)
  const sendBatcher = createBatcher({
    ...SEND_BATCHING,
    run: (intents: SendIntent[]) => acceptIntents(pool, intents, config.limits.recipientsPerDay),
  })
  const policies = createBatcher({
    ...KEY_BATCHING,
    lateMs: SEND_BATCHING.lateMs,
    run: (wanted: WantedRecipients[]) => readSendPolicies(pool, wanted, config.limits.storageBytes),
  })
  const till = createTillBatchers(pool, config.limits)
  const waiters = startWaiters(databaseUrl, log)
  const events = startEventFeed(databaseUrl, pool, log)
  const metrics = createMetrics({ pool, events, waiters, limits: config.limits })
  const objectStore = openStoreOf(config.blobStore, fetch, log, { observe: metrics.blobRequest })
  const blobs = createBlobs(pool, objectStore)
  const answers = new HeldAnswers()
  const exports = createExports({ pool: poolOf(' (export)', EXPORTS_MAX + 1), blobs }, log)
  const master = masterKeys(config)
  const keyring = createKeyringSource(master)
  const offerKey = createOfferKey({ config, pool })
  const app = createApp(
    {
      config,
      pool,
      gatePool,
      keys,
      blobs,
      answers,
      loopTime,
      strangerReads: new StrangerReads(searches),
      reviews: new RecentReviews(),
      searches,
      reads,
      messages,
      credentials,
      log,
      sendBatcher,
      policies,
      ...till,
      offerCounts,
      waiters,
      events,
      exports,
      metrics,
      keyring,
      pageSeals: pageSeals(master),
      browserProofs: macsFor(master, 'purser/browser'),
      stateKeys: master.map(({ key }) => deriveKey(key, 'purser/mcp-state')),
      offerKey,
    },
    usage,
  )
  let inFlight = 0
  let draining = false
  const server = serve(
    {
      port: config.http.port,
      hostname: config.http.host,
      idleTimeout: IDLE_TIMEOUT_S,
      maxRequestBodySize: SOCKET_BODY_MAX_BYTES,
      async fetch(request, self) {
        inFlight++
        try {
          const answered = await app(request, self.requestIP(request)?.address ?? '')
          const response = await heldAnswer({ answers, loopTime }, request, answered)
          if (draining) response.headers.set('connection', 'close')
          return response
        } finally {
          inFlight--
        }
      },
    },
    'PORT',
  )
  return {
    port: server.port!,
    async stop() {
      draining = true
      const deadlineMs = performance.now() + READ_ON_MS
      const closed = server.stop()
      waiters.release()
      events.release()
      while (inFlight > 0) await Bun.sleep(DRAIN_POLL_MS)
      // An export can take hours. Therefore the stop of the process does not wait for it.
      while (server.pendingRequests > exports.size() && performance.now() < deadlineMs) {
        await Bun.sleep(DRAIN_POLL_MS)
      }
      await Promise.race([closed, Bun.sleep(DRAIN_POLL_MS * 5)])
      await server.stop(true)
      await exports.stop()
      await Promise.all(
        [keys, messages, policies, sendBatcher, ...Object.values(till)].map((batcher) =>
          batcher.drain(),
        ),
      )
      await Promise.all([waiters.stop(), events.stop()])
      await Promise.all([usage.stop(), offerCounts.stop()])
      await reads.stop()
      await Promise.all([pool, gatePool, searchPool, ...replicaPools].map((one) => one.end()))
    },
  }
}

/**
 * Holds the memory of a large response until the client has read it. The function never refuses the response to a
 * request that has changed data for lack of memory, because this would hide the change. The service refuses the
 * project's next change instead.
 */
async function heldAnswer(
  { answers, loopTime }: { answers: HeldAnswers; loopTime: LoopTime },
  request: Request,
  answered: Response,
) {
  const { growing } = stateOf(request)
  if (growing !== null) return await grownAnswer({ loopTime, growing }, request, answered)
  const reader = readerOf(request)
  if (reader === null) {
    const changer = changerOf(request)
    if (changer === null) return await sendLargeAtOnce(answered)
    return await sendLargeAtOnce(answered, async (bytes) => answers.changed(changer, bytes))
  }
  try {
    return await sendLargeAtOnce(answered, (bytes) => {
      // The processing time of the response counts against the caller's limit even if the service then refuses the
      // response for lack of memory, because the work is already done.
      loopTime.countJson(reader, bytes.length)
      // The memory of a response without a key is not counted, because callers without a key read only public
      // documents, whose pages have a few megabytes at most.
      if (isStranger(request)) return Promise.resolve(new Uint8Array(bytes))
      return answers.body(reader.sharer, bytes.length, async () => bytes)
    })
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const refused = errorResponse(error)
    for (const name of ['x-request-id', 'x-content-type-options', 'cache-control']) {
      const value = answered.headers.get(name)
      if (value !== null) refused.headers.set(name, value)
    }
    return refused
  }
}

/**
 * Counts the memory of a large response to a batch of MCP calls until the client has read it. The function never
 * refuses the response, because the service may have made a change.
 */
async function grownAnswer(
  { loopTime, growing }: { loopTime: LoopTime; growing: GrowingAnswer },
  request: Request,
  answered: Response,
) {
  let isHeld = false
  try {
    return await sendLargeAtOnce(answered, async (bytes) => {
      loopTime.countJson({ sharer: projectOf(request).projectId, route: MCP_PATH }, bytes.length)
      isHeld = true
      return growing.body(bytes)
    })
  } finally {
    if (!isHeld) growing.release()
  }
}
