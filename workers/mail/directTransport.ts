import SmtpConnection from 'nodemailer/lib/smtp-connection'
import { domainOf } from '../../shared/mail/address.ts'
import type { RecipientOutcome } from '../../sql/mail/mailAttempts.ts'
import { findMailHosts, type MailHost, type MailHostsOptions } from './mailHosts.ts'
import { allOf, outcomesOfFailure, outcomesOfSuccess, type SmtpFailure } from './smtpOutcome.ts'
import type { OutgoingMail, Transport } from './transport.ts'

export type DirectOptions = MailHostsOptions & {
  /** Default: 25. Tests set another. */
  port?: number
}

const SMTP_PORT = 25
const CONNECT_TIMEOUT_MS = 30_000
/** RFC 5321 §4.5.3.2 allows five minutes. Less here: a silent host holds a slot for each of its addresses. */
const GREETING_TIMEOUT_MS = 60_000
/** RFC 5321 §4.5.3.2: five minutes for most commands, ten for the answer to the message. */
const SOCKET_TIMEOUT_MS = 10 * 60_000
/** For a whole connection: a byte now and then resets the other time-outs. */
const CONNECTION_MAX_MS = 20 * 60_000

/**
 * Delivers to the mail hosts of each recipient's domain. TLS is opportunistic, and no certificate is checked: an
 * unverified host is better than none (RFC 3207 §4.1). A failed TLS handshake falls back to plain text.
 */
export function createDirectTransport(options: DirectOptions): Transport {
  return {
    route: 'direct',
    split(addresses) {
      const domains = new Map<string, string[]>()
      for (const address of addresses) {
        const domain = domainOf(address)
        domains.set(domain, [...(domains.get(domain) ?? []), address])
      }
      return [...domains].map(([lane, to]) => ({ lane, to }))
    },
    send: (mail) => deliver(mail, options),
    close() {},
  }
}

async function deliver(mail: OutgoingMail, options: DirectOptions): Promise<RecipientOutcome[]> {
  const found = await findMailHosts(domainOf(mail.to[0]!), options)
  if (found.kind === 'none') return allOf(mail.to, 'failed', found.error)
  if (found.kind === 'unknown') return allOf(mail.to, 'deferred', found.error)
  let lastFailure: SmtpFailure | undefined
  for (const host of found.hosts) {
    const session = await talkTo(host, mail, options)
    if (session.reached) return session.outcomes
    lastFailure = session.failure
  }
  return outcomesOfFailure(mail.to, lastFailure!)
}

/** Whether a host let us begin a transaction; if not, the next host is tried. */
type Session =
  | { reached: true; outcomes: RecipientOutcome[] }
  | { reached: false; failure: SmtpFailure }

async function talkTo(
  host: MailHost,
  mail: OutgoingMail,
  options: DirectOptions,
): Promise<Session> {
  const first = await attempt(host, mail, options, { plain: false })
  if (!first.tlsFailed) return first
  return await attempt(host, mail, options, { plain: true })
}

/**
 * One connection. Once the transaction has begun, its outcome stands: a host that breaks off may have the message, and
 * another host of the domain would deliver it again.
 */
function attempt(
  host: MailHost,
  { from, to, raw }: OutgoingMail,
  { ownName, port = SMTP_PORT }: DirectOptions,
  { plain }: { plain: boolean },
): Promise<Session & { tlsFailed: boolean }> {
  const connection = new SmtpConnection({
    host: host.address,
    port,
    name: ownName,
    secure: false,
    ignoreTLS: plain,
    opportunisticTLS: !plain,
    tls: { servername: host.name, rejectUnauthorized: false },
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: GREETING_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
  })
  const { promise, resolve } = Promise.withResolvers<Session & { tlsFailed: boolean }>()
  const timer = setTimeout(() => fail(timedOut()), CONNECTION_MAX_MS)
  void promise.then(() => clearTimeout(timer))
  let begun = false
  const fail = (failure: SmtpFailure) => {
    if (begun) {
      resolve({ reached: true, outcomes: outcomesOfFailure(to, failure), tlsFailed: false })
    } else {
      const tlsFailed = connection.upgrading === true
      resolve({ reached: false, failure: withHost(failure, host), tlsFailed })
    }
    connection.close()
  }
  connection.on('error', fail)
  connection.connect((error) => {
    if (error) return fail(error as SmtpFailure)
    begun = true
    connection.send({ from, to: [...to], size: raw.length }, raw, (failure, info) => {
      if (failure) return fail(failure as SmtpFailure)
      const refused = (info as { rejectedErrors?: SmtpFailure['rejectedErrors'] }).rejectedErrors
      resolve({ reached: true, outcomes: outcomesOfSuccess(to, refused), tlsFailed: false })
      connection.quit()
    })
  })
  return promise
}

const timedOut = () =>
  Object.assign(new Error('the connection took too long'), { code: 'ETIMEDOUT' })

/** Quotes an SMTP reply with the host's name. A connection fault is reworded: it must not name the dialled address. */
function withHost(failure: SmtpFailure, host: MailHost): SmtpFailure {
  const said = failure.response ?? connectionFault(failure)
  return new Error(`${host.name}: ${said}`)
}

const connectionFault = ({ code }: SmtpFailure): string =>
  code === 'ETIMEDOUT' ? '421 4.4.1 no answer in time' : '421 4.4.1 the connection failed'
