/**
 * Describes the findings about an SMTP server: whether the server answers, its extensions, and its certificate after
 * STARTTLS.
 */
import { connect, isIP, type Socket } from 'node:net'
import { checkServerIdentity, type TLSSocket, connect as tlsConnect } from 'node:tls'
import type { SeenCertificate } from '../../../shared/doctor/certificateFindings.ts'
import type { Reached } from '../../../shared/doctor/mailInFindings.ts'
import { errorCode } from '../../../shared/errorCode.ts'
import { LOOK_MS } from './look.ts'

export type SmtpLook =
  | { reached: Exclude<Reached, 'answered'> }
  | {
      reached: 'answered'
      /** Holds the lines of the reply to EHLO in upper case, without the reply code. */
      extensions: readonly string[]
      /**
       * Holds the certificate of the SMTP server. The certificate is `null` if the SMTP server offers no STARTTLS, or
       * if STARTTLS failed.
       */
      certificate: SeenCertificate | null
    }

type Asked = {
  host: string
  port: number
  ownName: string
  /** Holds the host name for which the certificate of the SMTP server must be valid. */
  servername: string
  /** Tells whether the SMTP connection uses TLS from its first byte (RFC 8314). */
  isImplicit?: boolean
  ca?: string
}

/** Limits the characters of an SMTP reply to 20 lines of 512 octets each (RFC 5321 §4.5.3.1.5). */
const ANSWER_CHARS_MAX = 10_240

/**
 * Queries an SMTP server for its extensions and its certificate, then ends the connection. The returned promise never
 * rejects, even if the connection fails.
 */
export async function lookAtSmtp(asked: Asked): Promise<SmtpLook> {
  const socket = connect({ host: asked.host, port: asked.port })
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    socket.destroy(new Error('late'))
  }, LOOK_MS)
  try {
    await opened(socket)
    return await talk(socket, asked)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ECONNREFUSED') return { reached: 'refused' }
    return { reached: isLate || code === 'ETIMEDOUT' ? 'silent' : 'unreachable' }
  } finally {
    clearTimeout(timer)
    socket.on('error', () => {}).destroy()
  }
}

async function talk(socket: Socket, asked: Asked): Promise<SmtpLook> {
  const stream = asked.isImplicit === true ? await secured(socket, asked) : socket
  const say = talker(stream)
  await say(null)
  const extensions = (await say(`EHLO ${asked.ownName}`)).map((line) => line.slice(4).toUpperCase())
  const answered = { reached: 'answered', extensions } as const
  if (asked.isImplicit === true) {
    return { ...answered, certificate: certificateOf(stream as TLSSocket, asked.servername) }
  }
  if (!extensions.includes('STARTTLS')) return { ...answered, certificate: null }
  try {
    await say('STARTTLS')
    const secure = await secured(socket, asked)
    const certificate = certificateOf(secure, asked.servername)
    secure.on('error', () => {}).end('QUIT\r\n')
    return { ...answered, certificate }
  } catch {
    return { ...answered, certificate: null }
  }
}

const opened = (socket: Socket) =>
  new Promise<void>((resolve, reject) => {
    socket
      .once('connect', resolve)
      .once('error', reject)
      .once('close', () => reject(new Error('closed')))
  })

/**
 * Returns a function that sends one SMTP line and returns the lines of the server's reply. If the given line is `null`,
 * that function sends nothing and only reads the reply. @throws if the SMTP server refuses the line, or if the
 * connection ends.
 */
function talker(stream: Socket): (line: string | null) => Promise<string[]> {
  let received = ''
  let hasEnded = false
  let wake = () => {}
  stream.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1')
    wake()
  })
  const end = () => {
    hasEnded = true
    wake()
  }
  stream.on('error', end).on('close', end)
  return async (line) => {
    if (line !== null) stream.write(`${line}\r\n`)
    for (;;) {
      const whole = /^(?:\d{3}-[^\n]*\n)*\d{3}(?: [^\n]*)?\r?\n/.exec(received)?.[0]
      if (whole !== undefined) {
        received = received.slice(whole.length)
        if (!/^[23]/.test(whole)) throw new Error('refused')
        return whole.split(/\r?\n/).filter((one) => one !== '')
      }
      if (hasEnded || received.length > ANSWER_CHARS_MAX) throw new Error('no answer')
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
}

/**
 * Starts TLS on an SMTP connection and accepts any certificate, because the certificate is judged later, and no secret
 * is sent over the connection.
 */
const secured = (socket: Socket, { servername, ca }: Asked) =>
  new Promise<TLSSocket>((resolve, reject) => {
    socket.removeAllListeners('data')
    const secure = tlsConnect({
      socket,
      rejectUnauthorized: false,
      ...(isIP(servername) === 0 ? { servername } : {}),
      ...(ca === undefined ? {} : { ca }),
    })
    secure.once('secureConnect', () => resolve(secure))
    secure.once('error', reject).once('close', () => reject(new Error('closed')))
    socket.once('close', () => reject(new Error('closed')))
  })

/** Returns the certificate that the SMTP server showed. Returns `null` if the server showed no certificate. */
function certificateOf(socket: TLSSocket, servername: string): SeenCertificate | null {
  const peer = socket.getPeerCertificate()
  if (peer.valid_to === undefined) return null
  const names = (peer.subjectaltname ?? '').split(', ').map((name) => name.replace(/^[^:]*:/, ''))
  return {
    fits: checkServerIdentity(servername, peer) === undefined,
    names: names.filter((name) => name !== ''),
    expiresAt: new Date(peer.valid_to),
    trusted: socket.authorized || onlyNameIsWrong(socket),
    issuer: [peer.issuer?.O ?? peer.issuer?.CN ?? ''].flat().join(' '),
  }
}

const onlyNameIsWrong = ({ authorizationError }: TLSSocket): boolean =>
  /ALTNAME|HOSTNAME/.test(
    String((authorizationError as { code?: string })?.code ?? authorizationError),
  )

/**
 * Returns the certificate of an HTTPS server. Returns `null` if the HTTPS server has no certificate, or if no
 * connection is possible.
 */
export async function lookAtTls(asked: {
  host: string
  port: number
  servername: string
  ca?: string
}): Promise<SeenCertificate | null> {
  const socket = connect({ host: asked.host, port: asked.port })
  const timer = setTimeout(() => socket.destroy(new Error('late')), LOOK_MS)
  try {
    await opened(socket)
    return certificateOf(await secured(socket, { ...asked, ownName: '' }), asked.servername)
  } catch {
    return null
  } finally {
    clearTimeout(timer)
    socket.on('error', () => {}).destroy()
  }
}
