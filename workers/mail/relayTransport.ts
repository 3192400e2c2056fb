import nodemailer from 'nodemailer'
import { outcomesOfFailure, outcomesOfSuccess, type SmtpFailure } from './smtpOutcome.ts'
import type { Consignment, Transport } from './transport.ts'

const CONNECTIONS_MAX = 5
const CONNECT_TIMEOUT_MS = 20_000
const SOCKET_TIMEOUT_MS = 60_000

/** One consignment with all recipients: the smarthost takes each of them. */
export const oneConsignment = (addresses: string[]): Consignment[] =>
  addresses.length === 0 ? [] : [{ lane: null, to: addresses }]

/** Sends all mail to a smarthost. @param ownName our name in EHLO. */
export function createRelayTransport(relayUrl: string, ownName: string): Transport {
  const url = new URL(relayUrl)
  const secure = url.protocol === 'smtps:'
  const mailer = nodemailer.createTransport({
    pool: true,
    maxConnections: CONNECTIONS_MAX,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (secure ? 465 : 587) : Number(url.port),
    secure,
    name: ownName,
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
    split: oneConsignment,
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
