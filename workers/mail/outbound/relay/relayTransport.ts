import nodemailer from 'nodemailer'
import type { Logger } from 'pino'
import type { Config } from '../../../../shared/config/config.ts'
import { createOutage } from '../../../../shared/process/outage.ts'
import type { RecipientOutcome } from '../../../../sql/mail/outbound/mailAttempts.ts'
import {
  isRefusal,
  outcomesOfFailure,
  outcomesOfSuccess,
  type SmtpFailure,
} from '../smtpOutcome.ts'
import {
  type Consignment,
  type Envelope,
  REPLY_TIMEOUT_MS,
  type Report,
  type Transport,
} from '../transport.ts'
import { relayTls, untrusted } from './relayTls.ts'

const CONNECTIONS_MAX = 5
/**
 * Limits the connections for mail of the service itself, such as sign-in links. These mails do not wait behind the mails
 * of projects, which may occupy all their connections for minutes.
 */
const OWN_CONNECTIONS_MAX = 2
/**
 * Limits how long the service keeps idle connections, because a firewall may forget an idle connection, and the next
 * mail on this connection would then wait for REPLY_TIMEOUT_MS.
 */
const IDLE_MAX_MS = 30_000
const CONNECT_TIMEOUT_MS = 20_000

/**
 * Returns one consignment (recipients that the service serves together) with all recipients of a mail. The smarthost
 * gets a separate copy of the mail for each recipient.
 */
export const oneConsignment = (addresses: string[]): Consignment[] =>
  addresses.length === 0 ? [] : [{ lane: null, to: addresses }]

export type RelaySettings = Pick<Config, 'relayUrl' | 'relayTls' | 'relayCaFile'>

/** Returns the options of the SMTP library for the smarthost. @throws {ConfigError} for an unusable certificate. */
export function relayOptions(settings: RelaySettings, ownName: string) {
  const url = new URL(settings.relayUrl)
  const secure = url.protocol === 'smtps:'
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (secure ? 465 : 587) : Number(url.port),
    secure,
    ...relayTls(settings),
    name: ownName,
    ...(url.username === ''
      ? {}
      : {
          auth: { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) },
          // With `forceAuth`, the mail waits while the smarthost does not offer AUTH. Without a login, the smarthost
          // might refuse the mail for good.
          forceAuth: true,
        }),
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

/**
 * Sends all mail to a smarthost, which relays the mail. @param ownName is the name of this host that the service sends
 * in EHLO. @throws {ConfigError} for an unusable certificate.
 */
export function createRelayTransport(
  settings: RelaySettings,
  {
    ownName,
    log,
    idleMaxMs = IDLE_MAX_MS,
  }: {
    ownName: string
    log: Logger
    /** Sets after how many milliseconds without mail the connections are closed. The default is IDLE_MAX_MS. */
    idleMaxMs?: number
  },
): Transport {
  const trust = createOutage('a trusted connection to the smarthost')
  const open = (maxConnections: number) =>
    createMailer(
      () =>
        nodemailer.createTransport({
          pool: true,
          maxConnections,
          ...relayOptions(settings, ownName),
          // nodemailer counts the connection, the greeting and the TLS handshake together, so this limit is three times
          // the limit of one step.
          connectionTimeout: 3 * CONNECT_TIMEOUT_MS,
          greetingTimeout: CONNECT_TIMEOUT_MS,
          socketTimeout: REPLY_TIMEOUT_MS,
        }),
      idleMaxMs,
    )
  const [ofProjects, ofService] = [open(CONNECTIONS_MAX), open(OWN_CONNECTIONS_MAX)]
  /** Logs a TLS failure of the SMTP relay, at most once a minute. */
  const explained = (failure: SmtpFailure): SmtpFailure => {
    const found = untrusted(failure)
    if (found === null) return failure
    trust.missed((fields, text) => log.error(fields, text), found.reason)
    return found.failure
  }
  const deliver = async ({ from, to }: Envelope, raw: Buffer): Promise<Delivery> => {
    try {
      // Only mail of the service itself has the null reverse-path (RFC 5321 §4.5.5), so the empty sender selects the
      // connections for such mail.
      const mailer = from === '' ? ofService : ofProjects
      const info = await mailer.send({ envelope: { from, to: [to] }, raw })
      const refused = (info as { rejectedErrors?: SmtpFailure['rejectedErrors'] }).rejectedErrors
      trust.answered()
      return { outcomes: outcomesOfSuccess([to], refused, info.response), broken: null }
    } catch (error) {
      const failure = explained(error as SmtpFailure)
      const broken = isRefusal(failure) ? null : failure
      return { outcomes: outcomesOfFailure([to], failure), broken }
    }
  }
  return {
    route: 'relay',
    split: oneConsignment,
    leadsHere: async () => false,
    async check() {
      await ofProjects.verify().then(trust.answered, (error) => {
        explained(error as SmtpFailure)
      })
    },
    send: ({ envelopes, raw }, report) =>
      inParallel(envelopes, (envelope) => deliver(envelope, raw), report),
    close() {
      ofProjects.close()
      ofService.close()
    },
  }
}

/**
 * Sends mail over a pool of SMTP connections. If the pool was idle for a while, opens new connections instead of
 * reusing the old ones. @param create creates the pool.
 */
function createMailer<Mailer extends ReturnType<typeof nodemailer.createTransport>>(
  create: () => Mailer,
  idleMaxMs: number,
) {
  let mailer = create()
  let sending = 0
  let idle: ReturnType<typeof setTimeout> | undefined
  const renew = () => {
    mailer.close()
    mailer = create()
  }
  return {
    async send(mail: Parameters<Mailer['sendMail']>[0]) {
      clearTimeout(idle)
      sending++
      try {
        return await mailer.sendMail(mail)
      } finally {
        sending--
        if (sending === 0) idle = setTimeout(renew, idleMaxMs).unref()
      }
    },
    verify: () => mailer.verify(),
    close() {
      clearTimeout(idle)
      mailer.close()
    },
  }
}

/**
 * Describes the outcome of one copy of a mail, and the failure of the SMTP connection. A failed SMTP connection also
 * affects copies for other recipients that wait for this connection.
 */
type Delivery = { outcomes: RecipientOutcome[]; broken: SmtpFailure | null }

/**
 * Sends the copies of a mail over the SMTP connections of the connection pool. If an SMTP connection breaks, the
 * service defers each copy of the mail whose SMTP transaction has not begun.
 */
async function inParallel(
  envelopes: readonly Envelope[],
  deliver: (envelope: Envelope) => Promise<Delivery>,
  report: Report,
): Promise<void> {
  const waiting = [...envelopes]
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { outcomes, broken } = await deliver(next)
      const others = broken === null ? [] : waiting.splice(0).map(({ to }) => to)
      await report([...outcomes, ...(broken === null ? [] : outcomesOfFailure(others, broken))])
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: CONNECTIONS_MAX }, work))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}
