import nodemailer from 'nodemailer'
import type { RecipientOutcome } from '../sql/outbound.ts'

/** Hands messages over to the outside. */
export type Transport = {
  /** Sends the bytes to these recipients; a remote failure is an outcome, never an exception. */
  send(mail: { from: string; to: string[]; raw: Buffer }): Promise<RecipientOutcome[]>
  close(): void
}

const CONNECTIONS_MAX = 5
const CONNECT_TIMEOUT_MS = 20_000
const SOCKET_TIMEOUT_MS = 60_000
const ERROR_MAX_LENGTH = 500

/** Keeps mail instead of sending it: its bytes are stored with the message, and that is all. */
const capture: Transport = {
  send: async ({ to }) => to.map((address) => ({ address, state: 'sent', error: null })),
  close() {},
}

/** What nodemailer tells of a refusal. */
type SmtpFailure = Error & {
  code?: string
  command?: string
  response?: string
  responseCode?: number
  rejectedErrors?: (SmtpFailure & { recipient?: string })[]
}

/** The transport for a relay URL: `capture`, or a smarthost as `smtp[s]://user:pass@host:port`. */
export function createTransport(relayUrl: string): Transport {
  if (relayUrl === 'capture') return capture
  const url = new URL(relayUrl)
  const secure = url.protocol === 'smtps:'
  const mailer = nodemailer.createTransport({
    pool: true,
    maxConnections: CONNECTIONS_MAX,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (secure ? 465 : 587) : Number(url.port),
    secure,
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
    async send({ from, to, raw }) {
      try {
        const info = await mailer.sendMail({ envelope: { from, to }, raw })
        const refused = (info as { rejectedErrors?: SmtpFailure['rejectedErrors'] }).rejectedErrors
        return perRecipient(to, refused ?? [])
      } catch (error) {
        return outcomesOfFailure(to, error as SmtpFailure)
      }
    },
    close: () => mailer.close(),
  }
}

/** Some recipients refused, the others accepted. */
function perRecipient(
  to: string[],
  refused: NonNullable<SmtpFailure['rejectedErrors']>,
): RecipientOutcome[] {
  const byAddress = new Map(refused.map((failure) => [failure.recipient, failure]))
  return to.map((address) => {
    const failure = byAddress.get(address)
    return failure === undefined
      ? { address, state: 'sent', error: null }
      : outcome(address, failure)
  })
}

function outcomesOfFailure(to: string[], failure: SmtpFailure): RecipientOutcome[] {
  const refused = failure.rejectedErrors ?? []
  if (refused.length > 0) return perRecipient(to, refused)
  return to.map((address) => outcome(address, failure))
}

/**
 * 5xx to MAIL, RCPT or DATA is the other side's last word on a message (RFC 5321 §4.2.1). Everything else may pass: 4xx,
 * a connection that fails, and also a refused login or greeting, which is trouble between us and the smarthost.
 */
function outcome(address: string, failure: SmtpFailure): RecipientOutcome {
  const final = isPermanent(failure)
  const said = failure.response ?? failure.message
  return { address, state: final ? 'failed' : 'deferred', error: said.slice(0, ERROR_MAX_LENGTH) }
}

function isPermanent({ responseCode, code, command }: SmtpFailure): boolean {
  if (responseCode === undefined || responseCode < 500) return false
  if (code === 'EAUTH' || code === 'ETLS') return false
  return command === undefined || !/^(CONN|EHLO|HELO|AUTH|STARTTLS)/i.test(command)
}
