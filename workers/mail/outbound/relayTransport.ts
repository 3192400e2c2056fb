import nodemailer from 'nodemailer'
import type { Logger } from 'pino'
import type { Config } from '../../../shared/config/config.ts'
import { createOutage } from '../../../shared/process/outage.ts'
import type { RecipientOutcome } from '../../../sql/mail/outbound/mailAttempts.ts'
import { relayTls, untrusted } from './relayTls.ts'
import { isRefusal, outcomesOfFailure, outcomesOfSuccess, type SmtpFailure } from './smtpOutcome.ts'
import {
  type Consignment,
  type Envelope,
  REPLY_TIMEOUT_MS,
  type Report,
  type Transport,
} from './transport.ts'

const CONNECTIONS_MAX = 5
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
  { ownName, log }: { ownName: string; log: Logger },
): Transport {
  const trust = createOutage('a trusted connection to the smarthost')
  const mailer = nodemailer.createTransport({
    pool: true,
    maxConnections: CONNECTIONS_MAX,
    ...relayOptions(settings, ownName),
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: REPLY_TIMEOUT_MS,
  })
  /** Logs a TLS failure of the SMTP relay, at most once a minute. */
  const explained = (failure: SmtpFailure): SmtpFailure => {
    const found = untrusted(failure)
    if (found === null) return failure
    trust.missed((fields, text) => log.error(fields, text), found.reason)
    return found.failure
  }
  const deliver = async ({ from, to }: Envelope, raw: Buffer): Promise<Delivery> => {
    try {
      const info = await mailer.sendMail({ envelope: { from, to: [to] }, raw })
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
    async check() {
      await mailer.verify().then(trust.answered, (error) => {
        explained(error as SmtpFailure)
      })
    },
    send: ({ envelopes, raw }, report) =>
      inParallel(envelopes, (envelope) => deliver(envelope, raw), report),
    close: () => mailer.close(),
  }
}

/**
 * Holds the outcome of one copy of a mail, and the failure of the SMTP connection. If the SMTP connection failed, the
 * failure also affects copies for other recipients that wait for this connection.
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
