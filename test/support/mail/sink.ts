import type { AddressInfo } from 'node:net'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer } from 'smtp-server'
import { takeQuotedPaths } from '../../../api/smtp/quotedPaths.ts'
import type { Certificate } from '../process/tlsServer.ts'

type SunkMail = {
  /** The id that the 250 answer names. */
  id: string
  from: string
  to: string[]
  raw: string
  email: Email
  /** Whether it came over TLS; below, the client's EHLO name. */
  secure: boolean
  helo: string
  /** The client's SNI name; undefined without. */
  servername: string | undefined
  /** When its data began, by performance.now(). */
  beganMs: number
}

/** A refusal that the sink gives: at RCPT for one address, or to the whole message. */
type Refusal = { code: number; message: string }

export type Sink = AsyncDisposable & {
  url: string
  port: number
  mails: SunkMail[]
  /** Refuses recipients while set; return null to accept. */
  refuseRecipient: (address: string) => Refusal | null
  /** Refuses messages after their data while set; the answer waits for a promise. */
  refuseData: () => Refusal | null | Promise<Refusal | null>
  /** Connections accepted so far. */
  connections: number
}

export type SinkOptions = {
  port?: number
  /** One of 127.0.0.0/8. */
  host?: string
  /** Offers STARTTLS, with an untrusted certificate. */
  tls?: boolean
  /** Offers STARTTLS with this certificate. */
  certificate?: Certificate
  /** The largest message it accepts, announced by SIZE. */
  bytesMax?: number
}

/** A real SMTP server that keeps the messages it gets. */
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
        // The client went away in the middle of its message.
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
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
  return sink
}
