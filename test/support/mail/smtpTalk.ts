import { connect, type Socket } from 'node:net'

/** Describes a raw SMTP dialogue, for input that no mail client sends. */
export type SmtpTalk = AsyncDisposable & {
  /** Sends one SMTP command. @returns the whole SMTP reply */
  say(line: string): Promise<string>
  /** Sends the given bytes over the SMTP connection without changing them. @returns the next SMTP reply */
  send(bytes: string | Buffer): Promise<string>
  /** Sends bytes over the SMTP connection without waiting for a reply. */
  write(bytes: string | Buffer): void
  closed: Promise<void>
}

/** Connects to the SMTP server from `localAddress`, reads the greeting and sends EHLO. */
export async function talkSmtp(port: number, localAddress = '127.0.0.1'): Promise<SmtpTalk> {
  const socket: Socket = connect({ port, host: '127.0.0.1', localAddress })
  let buffer = ''
  let waiting: { resolve: (reply: string) => void; reject: (error: Error) => void } | undefined
  const take = () => {
    // In the last line of an SMTP reply, a space follows the code (RFC 5321 §4.2.1).
    const match = /^(?:\d{3}-.*\r\n)*\d{3} .*\r\n/.exec(buffer)
    if (match === null || waiting === undefined) return
    buffer = buffer.slice(match[0].length)
    const { resolve } = waiting
    waiting = undefined
    resolve(match[0].trimEnd())
  }
  socket.setEncoding('latin1').on('data', (text: string) => {
    buffer += text
    take()
  })
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  void closed.then(() => waiting?.reject(new Error('the server closed the connection')))
  const reply = () =>
    new Promise<string>((resolve, reject) => {
      waiting = { resolve, reject }
      if (socket.destroyed) reject(new Error('the connection is closed'))
      take()
    })
  const greeting = await reply()
  if (!greeting.startsWith('220')) throw new Error(`the server refused the connection: ${greeting}`)
  const talk: SmtpTalk = {
    say: (line) => talk.send(`${line}\r\n`),
    send(bytes) {
      socket.write(bytes)
      return reply()
    },
    write: (bytes) => void socket.write(bytes),
    closed,
    async [Symbol.asyncDispose]() {
      socket.destroy()
      await closed
    },
  }
  await talk.say('EHLO client.test')
  return talk
}

/** Delivers the given bytes, whose lines end with CRLF, to one recipient. @returns the SMTP reply to the end of DATA */
export async function deliverRaw(
  port: number,
  to: string,
  raw: string | Buffer,
  { sender = 'sender@example.com', localAddress }: { sender?: string; localAddress?: string } = {},
): Promise<string> {
  await using talk = await talkSmtp(port, localAddress)
  await talk.say(`MAIL FROM:<${sender}>`)
  await talk.say(`RCPT TO:<${to}>`)
  await talk.say('DATA')
  const text = Buffer.isBuffer(raw) ? raw.toString('latin1') : Buffer.from(raw).toString('latin1')
  const body = text.replace(/\r?\n/g, '\r\n').replace(/^\./gm, '..')
  return await talk.send(Buffer.from(`${body}\r\n.\r\n`, 'latin1'))
}
