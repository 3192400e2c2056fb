/**
 * Sends DNS queries for TXT records over its own sockets, because Bun's resolver returns each string of a TXT record as
 * a separate record (oven-sh/bun#21370). A DKIM key is longer than the 255 bytes of one string, so its TXT record has
 * several strings. The strings that Bun's resolver returns cannot be joined again, because the boundaries between the
 * TXT records are lost.
 */
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect, isIPv6 } from 'node:net'
import {
  decode,
  encode,
  type Packet,
  RECURSION_DESIRED,
  streamDecode,
  streamEncode,
} from 'dns-packet'

/**
 * Sets the size of the largest DNS answer that passes through every network without fragmentation (DNS flag day 2020).
 */
const UDP_PAYLOAD_BYTES = 1232
const DNS_PORT = 53
/**
 * Sets how many milliseconds the service waits for a DNS answer before it repeats the query. Most DNS answers arrive
 * before the service repeats the query. After each repetition of a DNS query, the service waits twice as long for the
 * answer.
 */
const RESEND_MS = 250
const NXDOMAIN = 'NXDOMAIN'
const NOERROR = 'NOERROR'

export type TxtOptions = {
  /**
   * Lists the name servers as `address`, `address:port` or `[address]:port`. The name servers are asked in the order of
   * the list.
   */
  servers: readonly string[]
  timeoutMs: number
  /** Limits how often the whole list of name servers is tried. */
  tries: number
}

/** Reports that a name server failed or did not answer. */
class DnsFailure extends Error {
  readonly code: string
  constructor(code: string, name: string) {
    super(`queryTxt ${code} ${name}`)
    this.code = code
  }
}

/**
 * Returns the TXT records of a name, each TXT record as one text. The returned list is empty if the name or its TXT
 * record does not exist.
 * @throws {DnsFailure} if every name server fails or does not answer.
 */
export async function queryTxt(name: string, options: TxtOptions): Promise<string[]> {
  let failure = new DnsFailure('ENOSERVER', name)
  for (let attempt = 0; attempt < options.tries; attempt++) {
    for (const server of options.servers) {
      const answer = await ask(name, server, options.timeoutMs)
      if (answer === null) {
        failure = new DnsFailure('ETIMEOUT', name)
        continue
      }
      const { rcode } = answer as Packet & { rcode: string }
      if (rcode === NXDOMAIN) return []
      if (rcode === NOERROR) return textsOf(answer)
      failure = new DnsFailure('ESERVFAIL', name)
    }
  }
  throw failure
}

/**
 * Returns the texts of the TXT records in a DNS answer. If the name is an alias (CNAME), the DNS answer contains the
 * alias and the TXT records of its target.
 */
const textsOf = ({ answers = [] }: Packet): string[] =>
  answers.flatMap((answer) => {
    if (answer.type !== 'TXT') return []
    const strings = [answer.data].flat() as (Buffer | string)[]
    return Buffer.concat(strings.map((part) => Buffer.from(part))).toString('utf8')
  })

/**
 * Sends one DNS query. Repeats the DNS query over TCP if the UDP answer is truncated. Returns `null` if no DNS answer
 * comes.
 */
async function ask(name: string, server: string, timeoutMs: number): Promise<Packet | null> {
  const { host, port } = parseServer(server)
  const query: Packet = {
    type: 'query',
    // The query id is random, so that an attacker cannot guess it and forge the DNS answer (RFC 5452).
    id: randomInt(0x10000),
    flags: RECURSION_DESIRED,
    questions: [{ type: 'TXT', name }],
    additionals: [
      {
        type: 'OPT',
        name: '.',
        udpPayloadSize: UDP_PAYLOAD_BYTES,
        extendedRcode: 0,
        ednsVersion: 0,
        flags: 0,
        flag_do: false,
        options: [],
      },
    ],
  }
  const short = await overUdp(query, host, port, timeoutMs)
  const isCut = (short as (Packet & { flag_tc?: boolean }) | null)?.flag_tc === true
  return isCut ? await overTcp(query, host, port, timeoutMs) : short
}

function overUdp(query: Packet, host: string, port: number, timeoutMs: number) {
  const { promise, resolve } = Promise.withResolvers<Packet | null>()
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  const end = (answer: Packet | null) => {
    clearTimeout(timer)
    clearTimeout(again)
    socket.removeAllListeners('message').close()
    resolve(answer)
  }
  const timer = setTimeout(() => end(null), timeoutMs)
  let again: Timer | undefined
  // A UDP query without an answer is sent again soon, because a job waits for the answer. The service accepts the
  // answer to any of the queries that it has sent for the same question.
  const send = (nextMs: number) => {
    socket.send(encode(query))
    again = setTimeout(() => send(nextMs * 2), nextMs)
  }
  socket.on('error', () => end(null))
  socket.on('message', (message) => {
    const answer = decoded(() => decode(message))
    if (answers(answer, query)) end(answer)
  })
  socket.connect(port, host, () => send(RESEND_MS))
  return promise
}

function overTcp(query: Packet, host: string, port: number, timeoutMs: number) {
  const { promise, resolve } = Promise.withResolvers<Packet | null>()
  const socket = connect(port, host, () => socket.write(streamEncode(query)))
  let received = Buffer.alloc(0)
  const end = (answer: Packet | null) => {
    clearTimeout(timer)
    socket.destroy()
    resolve(answer)
  }
  const timer = setTimeout(() => end(null), timeoutMs)
  socket.on('error', () => end(null)).on('close', () => end(null))
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk])
    if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return
    const answer = decoded(() => streamDecode(received))
    end(answers(answer, query) ? answer : null)
  })
  return promise
}

function decoded(read: () => Packet): Packet | null {
  try {
    return read()
  } catch {
    return null
  }
}

function answers(answer: Packet | null, query: Packet): answer is Packet {
  const asked = answer?.questions?.[0]
  return (
    answer?.type === 'response' &&
    answer.id === query.id &&
    asked?.type === 'TXT' &&
    asked.name.toLowerCase() === query.questions![0]!.name.toLowerCase()
  )
}

function parseServer(server: string): { host: string; port: number } {
  const [, host = server, port] =
    /^\[([^\]]+)\](?::(\d+))?$/.exec(server) ?? /^([\d.]+):(\d+)$/.exec(server) ?? []
  return { host, port: port === undefined ? DNS_PORT : Number(port) }
}
