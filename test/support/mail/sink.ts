import type { AddressInfo } from 'node:net'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer } from 'smtp-server'
import { takeQuotedPaths } from '../../../api/smtp/quotedPaths.ts'
import type { Certificate } from '../process/tlsServer.ts'

type SunkMail = {
  /** Holds the id that the SMTP reply 250 of the sink (the test’s SMTP server) gives to the mail. */
  id: string
  from: string
  to: string[]
  raw: string
  email: Email
  /** Tells whether the mail arrived over TLS. `helo` is the name that the SMTP client sent in EHLO. */
  secure: boolean
  helo: string
  /** Holds the server name (SNI) that the client sent, or undefined without a server name. */
  servername: string | undefined
  /** Holds the time when the data of the SMTP message began, in milliseconds of performance.now(). */
  beganMs: number
}

/** Describes the refusal of one recipient address at RCPT, or of the whole message after DATA. */
type Refusal = { code: number; message: string }

export type Sink = AsyncDisposable & {
  url: string
  port: number
  mails: SunkMail[]
  /** Refuses a recipient at the SMTP command RCPT, unless the function returns null. */
  refuseRecipient: (address: string) => Refusal | null
  /**
   * Refuses a message after the SMTP command DATA, unless the function returns null. If the function returns a promise,
   * the SMTP reply to the message waits for its result.
   */
  refuseData: () => Refusal | null | Promise<Refusal | null>
  /** Counts the SMTP connections that the server has accepted. */
  connections: number
  /** Returns the number of SMTP connections that are open now. */
  open(): number
}

export type SinkOptions = {
  port?: number
  /** Holds an IP address within 127.0.0.0/8. */
  host?: string
  /** If this setting is true, the SMTP server offers STARTTLS with an untrusted certificate. */
  tls?: boolean
  /** If this setting holds a certificate, the SMTP server offers STARTTLS with it. */
  certificate?: Certificate
  /** Sets the size of the largest accepted message, which the server announces by SIZE. */
  bytesMax?: number
}

/** Starts a real SMTP server that records the messages that it receives. */
export async function startSink({
  port = 0,
  host = '127.0.0.1',
  certificate,
  tls = certificate !== undefined,
  bytesMax,
}: SinkOptions = {}): Promise<Sink> {
  const refusal = ({ code, message }: Refusal) =>
    Object.assign(new Error(message), { responseCode: code })
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: tls ? [] : ['STARTTLS'],
    disableReverseLookup: true,
    // The sink (the SMTP server of a test) never closes an idle connection itself, so a test sees when the service
    // closes it.
    socketTimeout: 10 * 60_000,
    logger: false,
    ...(bytesMax === undefined ? {} : { size: bytesMax }),
    ...(certificate === undefined ? {} : { key: certificate.key, cert: certificate.ca }),
    onConnect(session, callback) {
      sink.connections++
      takeQuotedPaths(server, session)
      callback()
    },
    onRcptTo({ address }, _session, callback) {
      const refused = sink.refuseRecipient(address)
      callback(refused === null ? null : refusal(refused))
    },
    async onData(stream, session, callback) {
      const beganMs = performance.now()
      const chunks: Buffer[] = []
      try {
        for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk)
      } catch {
        // The client has closed the connection before the end of its message, so no SMTP reply is sent.
        return
      }
      const refused = await sink.refuseData()
      if (refused !== null) return callback(refusal(refused))
      const raw = Buffer.concat(chunks).toString('latin1')
      const { mailFrom, rcptTo } = session.envelope
      const id = crypto.randomUUID()
      sink.mails.push({
        id,
        from: mailFrom === false ? '' : mailFrom.address,
        to: rcptTo.map(({ address }) => address),
        raw,
        email: await PostalMime.parse(Buffer.concat(chunks)),
        secure: session.secure,
        helo: String(session.hostNameAppearsAs),
        servername: (session as { servername?: string }).servername,
        beganMs,
      })
      callback(null, `Ok: queued as ${id}`)
    },
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(port, host, () => resolve()))
  const bound = (server.server.address() as AddressInfo).port
  const sink: Sink = {
    url: `smtp://${host}:${bound}`,
    port: bound,
    mails: [],
    refuseRecipient: () => null,
    refuseData: () => null,
    connections: 0,
    open: () => server.connections.size,
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
  return sink
}
