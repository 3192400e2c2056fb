import { Socket } from 'node:net'
import { rootCertificates, type TLSSocket } from 'node:tls'
import SmtpConnection from 'nodemailer/lib/smtp-connection'
import type { Logger } from 'pino'
import { domainOf } from '../../../../shared/mail/address.ts'
import { allowsHost, type MtaStsPolicy } from '../../../../shared/mail/mtaSts.ts'
import {
  allOf,
  asTransient,
  isRefusal,
  outcomesOfFailure,
  outcomesOfSuccess,
  type SmtpFailure,
} from '../smtpOutcome.ts'
import {
  type Envelope,
  type OutgoingMail,
  REPLY_TIMEOUT_MS,
  type Report,
  type Transport,
} from '../transport.ts'
import { findMailHosts, type MailHost, type MailHostsOptions } from './mailHosts.ts'
import type { FindPolicy } from './mtaSts.ts'

export type DirectOptions = MailHostsOptions & {
  /** Sets the port of mail hosts, 25 by default. Only tests set another port. */
  port?: number
  /** Finds the MTA-STS policy of a domain. If this function is absent, no domain has an MTA-STS policy. */
  findPolicy?: FindPolicy
  /** Adds certificate authorities, in PEM form, that mail hosts may use. */
  ca?: string
  log?: Pick<Logger, 'info'>
  /** Sets the time limits of a connection. Only tests set other limits. */
  timeouts?: { connectMs: number; greetingMs: number; consignmentMs?: number }
}

const SMTP_PORT = 25
/**
 * Limits how many milliseconds the service waits for a connection, for the greeting, and for the TLS handshake. RFC
 * 5321 §4.5.3.2 lets a client wait five minutes for the greeting. The service waits only one minute, because each
 * address of an unresponsive mail host occupies a job slot for this time.
 */
const TIMEOUTS = { connectMs: 30_000, greetingMs: 60_000 }
/**
 * Limits the time of a whole SMTP connection, because a mail host that keeps sending single bytes resets the other time
 * limits again and again.
 */
const CONNECTION_MAX_MS = 20 * 60_000
/**
 * Limits how long the service opens new SMTP connections to a domain for one mail. A host that ends each connection
 * after 20 minutes and one copy would otherwise delay a mail for longer than the job queue lets a job run.
 */
const CONSIGNMENT_MAX_MS = 60 * 60_000

/**
 * Delivers mail to the mail hosts of each recipient's domain. If a mail host offers TLS, the service uses TLS and
 * checks no certificate, because encryption to an unverified mail host is better than plain text (RFC 3207 §4.1). After
 * a failed TLS handshake the mail is sent in plain text. For a domain with an MTA-STS policy of the mode `enforce`, the
 * mail goes only over TLS and only to mail hosts that the policy names. Each of these mail hosts must prove its name
 * with a certificate (RFC 8461 §5).
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
    send: (mail, report) => deliver(mail, report, options),
    async leadsHere(domain) {
      const found = await findMailHosts(domain, options)
      return found.kind === 'none' && found.leadsHere === true
    },
    check: async () => {},
    close() {},
  }
}

async function deliver(
  { envelopes, raw }: OutgoingMail,
  report: Report,
  options: DirectOptions,
): Promise<void> {
  const to = envelopes.map((envelope) => envelope.to)
  const domain = domainOf(to[0]!)
  const policy = (await options.findPolicy?.(domain)) ?? null
  const found = await findMailHosts(domain, { ...options, policy })
  if (found.kind === 'none') return await report(allOf(to, 'failed', found.error))
  if (found.kind === 'unknown') return await report(allOf(to, 'deferred', found.error))
  const endsAtMs = performance.now() + (options.timeouts?.consignmentMs ?? CONSIGNMENT_MAX_MS)
  let left = envelopes
  let lastFailure: SmtpFailure | undefined
  for (const host of found.hosts) {
    // If a mail host ends an SMTP connection after some messages, the remaining messages are sent over a new
    // connection.
    for (;;) {
      if (performance.now() > endsAtMs)
        return await report(outcomesOfFailure(addresses(left), timedOut()))
      const session = await talkTo(host, { envelopes: left, raw }, report, { ...options, policy })
      if (!session.reached) {
        lastFailure = session.failure
        break
      }
      left = session.left
      if (left.length === 0) return
    }
  }
  await report(outcomesOfFailure(addresses(left), lastFailure!))
}

const addresses = (envelopes: readonly Envelope[]): string[] => envelopes.map(({ to }) => to)

type WithPolicy = DirectOptions & { policy: MtaStsPolicy | null }

/**
 * Tells whether a mail host allowed this service to begin an SMTP transaction. If no SMTP transaction began, the
 * service tries the next mail host. `left` lists the copies of the mail that the service did not offer to the mail
 * host.
 */
type Session =
  | { reached: true; left: readonly Envelope[] }
  | { reached: false; failure: SmtpFailure; tlsFailed: boolean }

async function talkTo(
  host: MailHost,
  mail: OutgoingMail,
  report: Report,
  options: WithPolicy,
): Promise<Session> {
  const first = await attempt(host, mail, report, { ...options, plain: false })
  if (first.reached || !first.tlsFailed || options.policy?.mode === 'enforce') return first
  return await attempt(host, mail, report, { ...options, plain: true })
}

/**
 * Opens one SMTP connection and makes one SMTP transaction for each copy of the mail. After an SMTP transaction has
 * begun, its outcome is final for this delivery attempt. A mail host that ends the SMTP connection may already have
 * accepted the message. If the service tried another mail host of the domain, that host could deliver the message a
 * second time.
 */
async function attempt(
  host: MailHost,
  { envelopes, raw }: OutgoingMail,
  report: Report,
  options: WithPolicy & { plain: boolean },
): Promise<Session> {
  const { connection, broken, opened, end } = connectTo(host, options)
  try {
    const closed = await Promise.race([opened, broken])
    if (closed !== null) {
      return {
        reached: false,
        failure: withHost(closed.failure, host),
        tlsFailed: closed.upgrading,
      }
    }
    noteTls(connection, host, options)
    for (const [n, envelope] of envelopes.entries()) {
      const answer = await Promise.race([
        transact(connection, envelope, raw),
        broken.then(({ failure }) => ({ failure })),
      ])
      const to = [envelope.to]
      const rest = envelopes.slice(n + 1)
      if (!('failure' in answer)) {
        await report(outcomesOfSuccess(to, answer.refused))
        continue
      }
      // After a failed TLS handshake, the service sends MAIL without TLS. A mail host that demands TLS then refuses the
      // command with a 5xx reply, which counts as a transient failure here.
      const { command, responseCode = 0 } = answer.failure
      const isForLackOfTls = options.plain && command === 'MAIL FROM' && responseCode >= 500
      const failure = isForLackOfTls ? asTransient(answer.failure) : answer.failure
      const goesOn = rest.length > 0 && (await Promise.race([isReset(connection, failure), broken]))
      await report(outcomesOfFailure(to, failure))
      if (goesOn === true) continue
      // If the mail host timed out, or closed the connection at once, each remaining copy of the mail would fail after
      // the same wait. A refusal, in contrast, concerns only one copy, so the service offers the remaining copies.
      const isHeard = n > 0 || isRefusal(failure)
      if (isHeard && failure.code !== 'ETIMEDOUT') return { reached: true, left: rest }
      if (rest.length > 0) await report(outcomesOfFailure(addresses(rest), failure))
      return { reached: true, left: [] }
    }
    return { reached: true, left: [] }
  } finally {
    end()
  }
}

type Broken = { failure: SmtpFailure; upgrading: boolean }

/**
 * Opens an SMTP connection. The promise `opened` resolves to `null` if an SMTP transaction may begin. If the SMTP
 * connection breaks, the promise `broken` resolves and ends every wait for this connection.
 */
function connectTo(
  host: MailHost,
  {
    ownName,
    port = SMTP_PORT,
    plain,
    policy,
    ca,
    timeouts: { connectMs, greetingMs } = TIMEOUTS,
  }: WithPolicy & { plain: boolean },
) {
  const socket = new Socket()
  const isEnforced = policy?.mode === 'enforce'
  const connection = new SmtpConnection({
    socket,
    host: host.address,
    port,
    name: ownName,
    secure: false,
    ignoreTLS: plain,
    requireTLS: isEnforced,
    opportunisticTLS: !plain && !isEnforced,
    tls: {
      servername: host.name,
      rejectUnauthorized: isEnforced,
      ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
    },
    // nodemailer counts the connection, the greeting and the TLS handshake together, so `connectionTimeout` is the sum of
    // their limits. The timer `connecting` limits the connection alone.
    connectionTimeout: connectMs + 2 * greetingMs,
    greetingTimeout: greetingMs,
    socketTimeout: REPLY_TIMEOUT_MS,
  })
  const { promise: broken, resolve: fail } = Promise.withResolvers<Broken>()
  const { promise: opened, resolve: open } = Promise.withResolvers<Broken | null>()
  const asBroken = (failure: SmtpFailure): Broken => ({
    failure,
    upgrading: connection.upgrading === true,
  })
  const timer = setTimeout(() => fail(asBroken(timedOut())), CONNECTION_MAX_MS)
  const connecting = setTimeout(() => fail(asBroken(timedOut())), connectMs)
  socket.once('connect', () => clearTimeout(connecting))
  connection.on('error', (failure) => fail(asBroken(failure as SmtpFailure)))
  connection.connect((error) => open(error ? asBroken(error as SmtpFailure) : null))
  return {
    connection,
    broken,
    opened,
    end() {
      clearTimeout(timer)
      clearTimeout(connecting)
      connection.quit()
      connection.close()
    },
  }
}

/**
 * Logs the TLS version of an SMTP connection, and whether the mail host would satisfy an MTA-STS policy of its domain.
 */
function noteTls(connection: SmtpConnection, host: MailHost, { policy, log }: WithPolicy): void {
  const socket = (connection as unknown as { _socket?: Partial<TLSSocket> })._socket
  const tls = connection.secure ? (socket?.getProtocol?.() ?? 'unknown') : 'none'
  const fault =
    policy === null || policy.mode === 'none' || allowsHost(policy, host.name)
      ? {}
      : { fault: 'host' }
  log?.info(
    { host: host.name, tls, mtaSts: policy?.mode ?? 'absent', ...fault },
    'mail host reached',
  )
}

type Answer = { refused: SmtpFailure['rejectedErrors'] } | { failure: SmtpFailure }

const transact = (connection: SmtpConnection, { from, to }: Envelope, raw: Buffer) =>
  new Promise<Answer>((resolve) => {
    connection.send({ from, to: [to], size: raw.length }, raw, (failure, info) => {
      if (failure) return resolve({ failure: failure as SmtpFailure })
      resolve({
        refused: (info as { rejectedErrors?: SmtpFailure['rejectedErrors'] }).rejectedErrors,
      })
    })
  })

/**
 * Tells whether the mail host accepts another SMTP transaction after a failure. After the reply 421, an SMTP connection
 * accepts no other transaction (RFC 5321 §3.8).
 */
const isReset = (connection: SmtpConnection, failure: SmtpFailure) =>
  new Promise<boolean>((resolve) => {
    if (!isRefusal(failure)) return resolve(false)
    connection.reset((error) => resolve(!error))
  })

const timedOut = () =>
  Object.assign(new Error('the connection took too long'), { code: 'ETIMEDOUT' })

/**
 * Puts the name of the mail host in front of the SMTP reply that the host sent. Replaces the text of a connection
 * error, because that text may contain the address to which the service connected.
 */
function withHost(failure: SmtpFailure, host: MailHost): SmtpFailure {
  const said = failure.response ?? connectionFault(failure)
  return new Error(`${host.name}: ${said}`)
}

const connectionFault = ({ code }: SmtpFailure): string =>
  code === 'ETIMEDOUT' ? '421 4.4.1 no answer in time' : '421 4.4.1 the connection failed'
