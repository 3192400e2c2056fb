import nodemailer from 'nodemailer'
import type { MailRoute } from '../../shared/mail/mailRetry.ts'
import type { RecipientOutcome } from '../../sql/mail/mailAttempts.ts'
import { createDirectTransport, type DirectOptions } from './directTransport.ts'
import { outcomesOfFailure, outcomesOfSuccess, type SmtpFailure } from './smtpOutcome.ts'

/** Bytes on their way to some recipients. */
export type OutgoingMail = { from: string; to: readonly string[]; raw: Buffer }

/** Recipients that are written to together, and the lane they share with others; null where all mail goes one way. */
export type Consignment = { lane: string | null; to: string[] }

/** Hands messages over to the outside. */
export type Transport = {
  route: MailRoute
  /** Parts recipients into those that one `send` takes. */
  split(addresses: string[]): Consignment[]
  /** Sends the bytes to these recipients; a remote failure is an outcome, never an exception. */
  send(mail: OutgoingMail): Promise<RecipientOutcome[]>
  close(): void
}

const CONNECTIONS_MAX = 5
const CONNECT_TIMEOUT_MS = 20_000
const SOCKET_TIMEOUT_MS = 60_000

const together = (addresses: string[]): Consignment[] =>
  addresses.length === 0 ? [] : [{ lane: null, to: addresses }]

/** Keeps mail instead of sending it: its bytes are stored with the message, and that is all. */
export const captureTransport: Transport = {
  route: 'relay',
  split: together,
  send: async ({ to }) => to.map((address) => ({ address, state: 'sent', error: null })),
  close() {},
}

/**
 * The transport for a relay URL: `capture`, `direct` to the hosts of the recipients' domains, or a smarthost as
 * `smtp[s]://user:pass@host:port`.
 */
export function createTransport(relayUrl: string, direct: DirectOptions): Transport {
  if (relayUrl === 'capture') return captureTransport
  if (relayUrl === 'direct') return createDirectTransport(direct)
  const url = new URL(relayUrl)
  const secure = url.protocol === 'smtps:'
  const mailer = nodemailer.createTransport({
    pool: true,
    maxConnections: CONNECTIONS_MAX,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (secure ? 465 : 587) : Number(url.port),
    secure,
    name: direct.ownName,
    ...(url.username === ''
      ? {}
      : {
          auth: { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) },
        }),
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return {
    route: 'relay',
    split: together,
    async send({ from, to, raw }) {
      try {
        const info = await mailer.sendMail({ envelope: { from, to: [...to] }, raw })
        const refused = (info as { rejectedErrors?: SmtpFailure['rejectedErrors'] }).rejectedErrors
        return outcomesOfSuccess(to, refused)
      } catch (error) {
        return outcomesOfFailure(to, error as SmtpFailure)
      }
    },
    close: () => mailer.close(),
  }
}
