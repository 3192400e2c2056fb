import { createSocket } from 'node:dgram'
import { type AddressInfo, createServer } from 'node:net'
import { type Answer, decode, encode, type Packet, streamDecode, streamEncode } from 'dns-packet'

export type NameServer = AsyncDisposable & {
  /** `address:port`. */
  address: string
  /** What was asked over UDP, in order: `TXT a.test`. */
  asked: string[]
}

const TRUNCATED = 0x200
const CODES = { none: 3, failure: 2 }

/**
 * A real name server on loopback. A name that begins with `broken` is a failure, and one with `half` when asked for AAAA;
 * one with `silent` has no answer, and one with `long` is answered over TCP alone. Before each answer comes what somebody would send who guesses.
 * @param records may change while it runs.
 */
export async function startNameServer(records: readonly Answer[]): Promise<NameServer> {
  const asked: string[] = []
  const udp = createSocket('udp4')
  udp.on('message', (message, from) => {
    const query = decode(message)
    const { name, type } = query.questions![0]!
    asked.push(`${type} ${name}`)
    if (name.startsWith('silent')) return
    const send = (packet: Packet) => udp.send(encode(packet), from.port, from.address)
    const answer = answerTo(query, records, name.startsWith('long') ? TRUNCATED : 0)
    // The wrong id, and another question.
    send({ ...answer, id: (query.id! + 1) % 0x10000 })
    send({ ...answer, questions: [{ type: 'TXT', name: `not-${name}` }] })
    send(answer)
  })
  const tcp = createServer((socket) => {
    socket
      .on('error', () => {})
      .on('data', (chunk) => {
        const bytes = streamEncode(answerTo(streamDecode(chunk), records, 0))
        // In pieces, as a network may deliver it.
        socket.write(bytes.subarray(0, 1))
        setImmediate(() => socket.write(bytes.subarray(1)))
      })
  })
  // TCP first: of its ports many are taken, by every connection that a test beside this one opens; of UDP hardly any.
  await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
  const { port } = tcp.address() as AddressInfo
  await new Promise<void>((resolve) => udp.bind(port, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${port}`,
    asked,
    async [Symbol.asyncDispose]() {
      udp.close()
      tcp.close()
    },
  }
}

function answerTo(query: Packet, records: readonly Answer[], flags: number): Packet {
  const { name, type } = query.questions![0]!
  const own = (of: string, wanted: string) =>
    records.filter((record) => record.name === of && record.type === wanted)
  const [alias] = own(name, 'CNAME') as { data: string }[]
  const answers =
    alias === undefined ? own(name, type) : [alias as Answer, ...own(alias.data, type)]
  const known = records.some((record) => record.name === name)
  const isFailure = name.startsWith('broken') || (name.startsWith('half') && type === 'AAAA')
  const code = isFailure ? CODES.failure : known ? 0 : CODES.none
  return {
    type: 'response',
    id: query.id!,
    flags: 0x180 | code | flags,
    questions: query.questions!,
    answers: flags === 0 ? answers : [],
  }
}
