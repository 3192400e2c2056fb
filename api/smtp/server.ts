import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import { openStoreOf } from '../../shared/blobs/objectStore.ts'
import type { Config } from '../../shared/config/config.ts'
import { Pace } from '../../shared/fair/pace.ts'
import { postmasterAliases } from '../../shared/mail/reservedAddresses.ts'
import { listenError } from '../../shared/process/listenError.ts'
import { createOutage } from '../../shared/process/outage.ts'
import type { Running } from '../../shared/process/service.ts'
import { measureBlobs } from '../../sql/blobs/blobMetrics.ts'
import { createBlobs } from '../../sql/blobs/blobs.ts'
import { createPool } from '../../sql/db.ts'
import { reportMetrics } from '../../sql/operations/processReports.ts'
import { AddressBook } from './addressBook.ts'
import { BlockedSenders } from './blockedSenders.ts'
import { readCertificate, watchCertificate } from './certificate.ts'
import { ConnectionLimits } from './connectionLimits.ts'
import { FullInboxes } from './fullInboxes.ts'
import { InboundKeys } from './http/inboundKeys.ts'
import { startMailServer } from './http/mailServer.ts'
import { type AskSns, createAskSns, createSesAdapter } from './http/ses.ts'
import { IncomingMails } from './incomingMail.ts'
import { createListener, type Patience } from './listener.ts'
import { startReporter } from './reporter.ts'
import { SenderRates } from './senderRates.ts'
import { createSmtpMetrics } from './smtpMetrics.ts'
import { Mover } from './spool/mover.ts'
import { Spool } from './spool/spool.ts'

/**
 * Sets the number of PostgreSQL connections of the SMTP listener. Two connections serve the mover (which moves mail
 * from the spool to PostgreSQL). The others serve address look-ups.
 */
const POOL_SIZE = 5
const REPORT_WAIT_MS = 500
/**
 * Sets the number of seconds for which the rate limit on bytes may be used up at once. It allows a burst of large mails
 * from one network or for one inbox.
 */
const LARGE_BURST_S = 2

/** Describes a running SMTP listener. */
export type SmtpServer = Running & {
  port: number
  /** Holds the port on which the listener receives mail over HTTP. Null means that mail over HTTP is off. */
  httpPort: number | null
}

/** Starts the inbound SMTP listener with its spool (the file of accepted mail). */
export async function startSmtp(
  config: Config,
  databaseUrl: string,
  log: Logger,
  options: {
    certificateCheckMs?: number
    quotaCheckMs?: number
    patience?: Patience
    askSns?: AskSns
  } = {},
): Promise<SmtpServer> {
  const certificate = config.smtp.tls === null ? null : readCertificate(config.smtp.tls)
  const pool = createPool({
    url: databaseUrl,
    size: POOL_SIZE,
    name: 'purser smtp',
    log,
  })
  const spool = new Spool(config.dataDir)
  const fullInboxes = new FullInboxes({
    pool,
    log,
    defaultBytes: config.limits.storageBytes,
    ...(options.quotaCheckMs === undefined ? {} : { intervalMs: options.quotaCheckMs }),
  })
  const incoming = new IncomingMails(
    config.dataDir,
    new Pace({ bytesPerS: config.smtp.largeBytesPerS, burstS: LARGE_BURST_S }),
  )
  const aliases = postmasterAliases(config)
  const limits = new ConnectionLimits({
    max: config.smtp.maxConnections,
    perAddressMax: config.smtp.maxConnectionsPerIp,
  })
  const metrics = createSmtpMetrics(spool, limits.count)
  const objectStore = openStoreOf(config.blobStore, fetch, log, {
    observe: measureBlobs(metrics.registry),
  })
  const mover = new Mover({ spool, pool, blobs: createBlobs(pool, objectStore), log })
  const reports = reportMetrics(pool, {
    part: 'smtp',
    registry: metrics.registry,
    beforeReport: metrics.look,
  })
  const reporter = startReporter({ pool, spool, log })
  const addressBook = new AddressBook({ spool, pool, databaseUrl, log, aliases })
  const blockedSenders = new BlockedSenders({ pool, databaseUrl, log })
  const parts = {
    spool,
    mover,
    addressBook,
    blockedSenders,
    limits,
    metrics,
    rates: new SenderRates(config.smtp),
    incoming,
    fullInboxes,
    spoolOutage: createOutage('the spool'),
    log,
  }
  const server = createListener(parts, {
    mailDomain: config.mailDomain,
    maxConnections: config.smtp.maxConnections,
    certificate,
    ...(options.patience === undefined ? {} : { patience: options.patience }),
  })
  const unwatch =
    config.smtp.tls === null
      ? () => {}
      : watchCertificate(config.smtp.tls, (renewed) => server.updateSecureContext(renewed), {
          log,
          ...(options.certificateCheckMs === undefined
            ? {}
            : { everyMs: options.certificateCheckMs }),
        })
  await new Promise<void>((resolve, reject) => {
    const { port, host } = config.smtp
    server.once('error', (error) =>
      reject(
        listenError(error, { portVariable: 'SMTP_PORT', port, hostVariable: 'SMTP_HOST', host }),
      ),
    )
    server.listen(port, host, () => resolve())
  })
  const { http } = config.smtp
  const mailServer =
    http === null
      ? null
      : startMailServer(
          {
            ...parts,
            mailDomain: config.mailDomain,
            keys: new InboundKeys(pool, http.secrets),
            pool,
            ses: sesAdapter(http, log, options.askSns),
          },
          {
            http,
            host: config.http.host,
            trustedProxies: config.trustedProxies,
            patience: options.patience,
          },
        )
  // The start waits only briefly for the first report to the database, because the listener accepts mail even while the
  // database is unreachable.
  await Promise.race([reporter.first, Bun.sleep(REPORT_WAIT_MS)])
  return {
    port: (server.server.address() as AddressInfo).port,
    httpPort: mailServer?.port ?? null,
    async stop() {
      unwatch()
      await Promise.all([
        new Promise<void>((resolve) => server.close(() => resolve())),
        mailServer?.stop(),
      ])
      await mover.stop()
      await Promise.all([
        addressBook.stop(),
        blockedSenders.stop(),
        reporter.stop(),
        reports.stop(),
        fullInboxes.stop(),
      ])
      await pool.end()
      await spool.close()
      incoming.close()
    },
  }
}

/** Returns the adapter that receives mail from Amazon SES. Returns `null` if the operator has set no SNS topic. */
function sesAdapter(
  { ses }: NonNullable<Config['smtp']['http']>,
  log: Logger,
  ask = createAskSns(fetch),
) {
  if (ses === null) return null
  return createSesAdapter({ settings: ses, bucket: openStoreOf(ses.bucket, fetch, log), ask, log })
}
