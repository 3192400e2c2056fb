import {
  SMTPServer,
  type SMTPServerAddress,
  type SMTPServerDataStream,
  type SMTPServerSession,
} from 'smtp-server'
import { errorCode } from '../../shared/errorCode.ts'
import { traced } from '../../shared/process/tracing.ts'
import { traceparent } from '../../shared/process/workContext.ts'
import {
  type AcceptingParts,
  admitSender,
  findInbox,
  keepMail,
  MESSAGE_MAX_BYTES,
  SmtpReply,
  TOO_LARGE,
  TOO_MANY_CONNECTIONS,
  TOO_MUCH_IN_FLIGHT,
} from './acceptance.ts'
import type { Certificate } from './certificate.ts'
import type { ConnectionLimits, OpenConnection } from './connectionLimits.ts'
import type { IncomingMails } from './incomingMail.ts'
import { takeQuotedPaths } from './quotedPaths.ts'
import type { SmtpMetrics } from './smtpMetrics.ts'

/**
 * Sets the maximum number of recipients of one SMTP message. An SMTP server must accept at least 100 recipients (RFC
 * 5321 §4.5.3.1.8).
 */
const RECIPIENTS_MAX = 100
export const PATIENCE = {
  /**
   * Holds the maximum number of milliseconds for which a client may stay silent while the listener waits for its next
   * bytes.
   */
  silentMs: 60_000,
  /**
   * Holds the maximum duration of an SMTP connection. Otherwise slow clients could occupy it for ever. It must exceed
   * ten minutes, because a client should wait ten minutes for the reply at the end of DATA (RFC 5321 §4.5.3.2).
   */
  connectionMs: 20 * 60_000,
  /** Holds the maximum duration of an HTTP request from a mail service. */
  requestMs: 10 * 60_000,
  /**
   * Sets for how many milliseconds after SIGTERM the listener waits for a message that is still arriving, because the
   * sender of an incomplete message sends it again later.
   */
  closeMs: 5_000,
}
export type Patience = typeof PATIENCE
/**
 * Sets the maximum number of SMTP connections that the listener is closing while their clients still read the last
 * reply.
 */
const ENDING_MAX = 200
/**
 * Sets the number of unknown recipients in one session from which the listener assumes that the client guesses
 * addresses.
 */
const UNKNOWN_RECIPIENTS_MAX = 20

type Parts = AcceptingParts & {
  limits: ConnectionLimits
  incoming: IncomingMails
  metrics: SmtpMetrics
}

/** Holds the state of one SMTP session. */
type SessionState = {
  /** Maps the RCPT addresses of accepted recipients to their inboxes. */
  inboxes: Map<string, string>
  /** Counts the unknown recipients that the client named in this SMTP session. */
  unknown: number
  /**
   * Holds the entry for an SMTP session in the list of open connections. Null means that the listener refused the
   * connection.
   */
  connection: OpenConnection | null
  /** Holds the timer that ends the SMTP session after its maximum duration. */
  deadline: ReturnType<typeof setTimeout> | undefined
}

const states = new WeakMap<SMTPServerSession, SessionState>()

function stateOf(session: SMTPServerSession): SessionState {
  let state = states.get(session)
  if (state === undefined) {
    state = { inboxes: new Map(), unknown: 0, connection: null, deadline: undefined }
    states.set(session, state)
  }
  return state
}

/**
 * Creates the inbound SMTP server (RFC 5321). It checks a recipient at RCPT. It replies 250 to a message only after the
 * message is on disk in the spool (the file of accepted mail). It does not relay mail, because it accepts only the
 * addresses of its own inboxes.
 */
export function createListener(
  parts: Parts,
  options: {
    mailDomain: string
    maxConnections: number
    certificate: Certificate | null
    patience?: Patience
  },
): SMTPServer {
  const patience = options.patience ?? PATIENCE
  const refused = (error: Error): SmtpReply => {
    const reply = error instanceof SmtpReply ? error : unexpected(parts, error)
    parts.metrics.refused(reply === error ? `${reply.responseCode} ${reply.message}` : 'other')
    return reply
  }
  const server = new SMTPServer({
    name: options.mailDomain,
    banner: 'Purser',
    size: MESSAGE_MAX_BYTES,
    disabledCommands: options.certificate === null ? ['AUTH', 'STARTTLS'] : ['AUTH'],
    ...(options.certificate ?? {}),
    authOptional: true,
    disableReverseLookup: true,
    hideDSN: true,
    // SMTPUTF8 is off for inbound mail, because the service does not support it for outgoing mail. The service could
    // not reply to a sender whose address needs SMTPUTF8.
    hideSMTPUTF8: true,
    hideREQUIRETLS: true,
    // The limit `maxClients` of the SMTP library also counts connections that are ending. Therefore the code adds the
    // maximum number of ending connections to the limit.
    maxClients: options.maxConnections + ENDING_MAX,
    socketTimeout: patience.silentMs,
    closeTimeout: patience.closeMs,
    logger: false,
    onConnect(session, callback) {
      const end = (reason: string) => hangUp(server, session, reason)
      const state = stateOf(session)
      state.connection = parts.limits.enter(session.remoteAddress, end)
      if (state.connection === null) {
        return callback(refused(new SmtpReply(421, TOO_MANY_CONNECTIONS)))
      }
      const tooLong = () => end('4.4.2 This connection has lasted too long')
      state.deadline = setTimeout(tooLong, patience.connectionMs)
      takeQuotedPaths(server, session)
      callback()
    },
    onClose(session) {
      const { connection, deadline } = stateOf(session)
      if (connection !== null) parts.limits.leave(connection)
      clearTimeout(deadline)
    },
    onMailFrom({ address, args }, session, callback) {
      const state = stateOf(session)
      if (needsUtf8(address, args)) {
        return callback(
          refused(new SmtpReply(553, '5.6.7 Addresses outside ASCII are not supported')),
        )
      }
      state.inboxes = new Map()
      if (state.connection !== null) state.connection.activeMs = performance.now()
      try {
        admitSender(parts, session.remoteAddress)
        callback()
      } catch (error) {
        callback(refused(error as Error))
      }
    },
    onRcptTo(address, session, callback) {
      resolveRecipient(parts, options.mailDomain, address, session).then(
        () => callback(),
        (error) => callback(refused(error)),
      )
    },
    onData(stream, session, callback) {
      receive(parts, stream, session).then(
        () => {
          parts.metrics.accepted()
          callback(null, 'OK: message accepted')
        },
        (error) => callback(refused(error)),
      )
    },
  })
  // The log line contains only the message of the error, and not the error in the field `err`. With a network error
  // such as ECONNRESET in this field, the log would report an outage of the database.
  server.on('error', ({ message }: Error) => {
    parts.log.warn({ reason: message }, 'smtp connection failed')
  })
  return server
}

/**
 * Returns the SMTP reply after an unexpected error. The client must not see the text of the error, which may name a
 * file. If a client disconnects while it sends a message, this is no fault of the service.
 */
function unexpected({ log }: Parts, error: Error): SmtpReply {
  if (errorCode(error) !== 'ECONNECTION') {
    log.error({ err: error }, 'mail over SMTP failed')
  }
  return new SmtpReply(451, '4.3.0 Something went wrong, try again later')
}

/**
 * Tells whether a MAIL command needs SMTPUTF8 (RFC 6531). The SMTP library passes domains in Unicode, so only the local
 * part of the address decides.
 */
const needsUtf8 = (address: string, args: object | false | undefined) =>
  /[^ -~]/.test(address.slice(0, address.lastIndexOf('@'))) || (args && 'SMTPUTF8' in args)

type Connection = {
  session: SMTPServerSession
  send(code: number, text: string): void
  close(): void
}

function hangUp(server: SMTPServer, session: SMTPServerSession, reason: string): void {
  const connections = (server as unknown as { connections: Set<Connection> }).connections
  for (const connection of connections) {
    if (connection.session !== session) continue
    connection.send(421, reason)
    connection.close()
  }
}

async function resolveRecipient(
  parts: Parts,
  mailDomain: string,
  { address }: SMTPServerAddress,
  session: SMTPServerSession,
): Promise<void> {
  const state = stateOf(session)
  const { inboxes, unknown } = state
  if (inboxes.size >= RECIPIENTS_MAX) throw new SmtpReply(452, '4.5.3 Too many recipients')
  if (unknown >= UNKNOWN_RECIPIENTS_MAX) {
    throw new SmtpReply(421, '4.7.0 Too many recipients that do not exist')
  }
  if (parts.rates.isGuessing(session.remoteAddress)) {
    throw new SmtpReply(450, '4.7.0 Too many recipients that do not exist, try again later')
  }
  const { mailFrom } = session.envelope
  const sender = mailFrom === false ? '' : mailFrom.address
  const network = session.remoteAddress
  const inbox = await findInbox(parts, { address, sender, mailDomain, network }, () => {
    state.unknown++
    parts.rates.countUnknown(network)
  })
  inboxes.set(address, inbox)
}

async function receive(
  parts: Parts,
  stream: SMTPServerDataStream,
  session: SMTPServerSession,
): Promise<void> {
  const { connection, inboxes } = stateOf(session)
  const incoming = parts.incoming.begin(new Set(inboxes.values()), connection!)
  let fits = true
  try {
    // The listener reads even a refused message to its end, because an SMTP server may reply only after the client has
    // sent the whole message.
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (fits && !stream.sizeExceeded) fits = await incoming.write(chunk)
    }
    if (stream.sizeExceeded) {
      throw new SmtpReply(552, TOO_LARGE)
    }
    if (!fits) throw new SmtpReply(452, TOO_MUCH_IN_FLIGHT)
    const bytes = await incoming.bytes()
    // Trace headers in a mail are content that its sender chose. The listener ignores them and begins a new trace when
    // the mail arrives.
    await traced(
      'SMTP DATA',
      { kind: 'server', parent: null, attributes: { 'purser.mail.bytes': bytes.length } },
      () => store(parts, bytes, session),
    )
    parts.rates.count(session.remoteAddress, new Set(inboxes.values()))
  } finally {
    await incoming.discard()
  }
}

async function store(parts: Parts, bytes: Buffer, session: SMTPServerSession): Promise<void> {
  const byInbox = new Map<string, string>()
  for (const { address } of session.envelope.rcptTo) {
    const inbox = stateOf(session).inboxes.get(address)
    if (inbox !== undefined) byInbox.set(inbox, address)
  }
  await keepMail(parts, {
    bytes,
    envelopeFrom: session.envelope.mailFrom === false ? '' : session.envelope.mailFrom.address,
    inboxes: [...byInbox].map(([address, envelopeTo]) => ({ address, envelopeTo })),
    remoteIp: session.remoteAddress,
    helo: session.hostNameAppearsAs,
    receivedAt: new Date(),
    traceparent: traceparent(),
  })
}
