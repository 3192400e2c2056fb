import { createSocket } from 'node:dgram'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import {
  type Answer,
  decode,
  encode,
  type Packet,
  RECURSION_DESIRED,
  streamDecode,
  streamEncode,
} from 'dns-packet'

export type NameServer = AsyncDisposable & {
  /** Holds the address of the name server in the form `IP:port`. */
  address: string
  /** Holds the DNS questions that came over UDP, in order, such as `TXT a.test`. */
  asked: string[]
  /** Holds the ids of the DNS queries that came over UDP. */
  ids: number[]
  /** Lists the DNS questions that came over TCP, in order. */
  askedOverTcp: string[]
}

const TRUNCATED = 0x200
const CODES = { none: 3, failure: 2 }
/** Holds the UDP size limit for a DNS client that names no size (RFC 1035 §4.2.1). */
const UDP_BYTES = 512
const FORGED: Answer[] = [{ type: 'TXT', name: 'forged.test', data: ['forged'] }]
const JUNK = Buffer.from([1, 2, 3])

/**
 * Starts a real DNS server on the loopback interface. It recurses only if the query requests recursion, and answers
 * with names in lower case. An answer above the client's UDP size is sent only over TCP, in pieces.
 *
 * The beginning of a name decides which answer the DNS server gives:
 * - a name that begins with `broken` or `_dmarc.broken` fails, a name that begins with `shaky` fails for the first
 *   query, and a name that begins with `half` fails for AAAA;
 * - a name that begins with `silent` never gets an answer, and a name that begins with `lost` gets no answer to the
 *   first query;
 * - over TCP, a name that begins with `closed` closes the connection, a name that begins with `mute` gets no answer, and
 *   names that begin with `forged` and `junk` get an invalid answer.
 *
 * Before each answer to a TXT query, the DNS server sends forged answers, as an attacker who guesses query ids would.
 * @param records holds the DNS records that the server answers with. The records may change while the server runs.
 */
export async function startNameServer(
  records: readonly Answer[],
  host = '127.0.0.1',
): Promise<NameServer> {
  const asked: string[] = []
  const askedOverTcp: string[] = []
  const ids: number[] = []
  const kind = host.includes(':') ? 'udp6' : 'udp4'
  const [udp, stranger] = [createSocket(kind), createSocket(kind)]
  udp.on('message', (message, from) => {
    const query = decode(message)
    const question = questionOf(query)
    const isFirst = !asked.includes(question)
    asked.push(question)
    ids.push(query.id!)
    const { name, type } = query.questions![0]!
    if (name.startsWith('silent') || (isFirst && name.startsWith('lost'))) return
    const send = (bytes: Uint8Array) => udp.send(bytes, from.port, from.address)
    const answer = answerTo(query, records, isFirst)
    const whole = encode(answer)
    const answered =
      whole.length > sizeFor(query)
        ? encode({ ...answer, flags: answer.flags! | TRUNCATED, answers: [] })
        : whole
    if (type !== 'TXT') return send(answered)
    const forged: Packet = { ...answer, flags: 0x180, answers: FORGED }
    // The first forged answer comes from an address other than the address of the name server. The other forged answers
    // follow.
    stranger.send(encode(forged), from.port, from.address, () => {
      send(JUNK)
      send(encode({ ...forged, type: 'query' }))
      send(encode({ ...forged, id: (query.id! + 1) % 0x10000 }))
      send(encode({ ...forged, questions: [{ type: 'TXT', name: `not-${name}` }] }))
      send(encode({ ...forged, questions: [{ type: 'A', name }] }))
      send(answered)
    })
  })
  const tcp = createServer((socket) => {
    socket
      .on('error', () => {})
      .on('data', (chunk) => {
        const query = streamDecode(chunk)
        askedOverTcp.push(questionOf(query))
        const { name } = query.questions![0]!
        if (name.startsWith('mute')) return
        if (name.startsWith('closed')) return socket.destroy()
        if (name.startsWith('junk')) return socket.write(Buffer.from([0, JUNK.length, ...JUNK]))
        const answer = answerTo(query, records, false)
        const isForged = name.startsWith('forged')
        const bytes = streamEncode(isForged ? { ...answer, id: (query.id! + 1) % 0x10000 } : answer)
        void inPieces(socket, [bytes.subarray(0, 1), bytes.subarray(1, 9), bytes.subarray(9)])
      })
  })
  // The DNS server takes a port for TCP first, because the connections of other tests take many TCP ports and few UDP
  // ports.
  await new Promise<void>((resolve) => tcp.listen(0, host, resolve))
  const { port } = tcp.address() as AddressInfo
  await new Promise<void>((resolve) => udp.bind(port, host, resolve))
  await new Promise<void>((resolve) => stranger.bind(0, host, resolve))
  return {
    address: kind === 'udp6' ? `[${host}]:${port}` : `${host}:${port}`,
    asked,
    ids,
    askedOverTcp,
    async [Symbol.asyncDispose]() {
      udp.close()
      stranger.close()
      tcp.close()
    },
  }
}

const questionOf = ({ questions }: Packet): string =>
  `${questions![0]!.type} ${questions![0]!.name}`

const sizeFor = ({ additionals }: Packet): number => {
  const edns = additionals?.find((record) => record.type === 'OPT')
  return edns?.type === 'OPT' ? edns.udpPayloadSize : UDP_BYTES
}

/**
 * Writes a text piece by piece, as a network may deliver it, so that the client reads each piece before the next comes.
 */
async function inPieces(socket: Socket, pieces: readonly Uint8Array[]): Promise<void> {
  for (const piece of pieces) {
    socket.write(piece)
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}

function answerTo(query: Packet, records: readonly Answer[], isFirst: boolean): Packet {
  const { type, name: asAsked } = query.questions![0]!
  const name = asAsked.toLowerCase()
  const own = (of: string, wanted: string) =>
    records.filter((record) => record.name === of && record.type === wanted)
  const [alias] = own(name, 'CNAME') as { data: string }[]
  const answers =
    alias === undefined ? own(name, type) : [alias as Answer, ...own(alias.data, type)]
  const known = records.some((record) => record.name === name)
  const isFailure =
    (query.flags! & RECURSION_DESIRED) === 0 ||
    /^(?:_[\w-]+\.)*broken/.test(name) ||
    (isFirst && name.startsWith('shaky')) ||
    (name.startsWith('half') && type === 'AAAA')
  const code = isFailure ? CODES.failure : known ? 0 : CODES.none
  return {
    type: 'response',
    id: query.id!,
    flags: 0x180 | code,
    questions: [{ type, name }],
    answers: isFailure ? [] : answers,
  }
}
