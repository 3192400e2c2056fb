/**
 * Replaces a PostgreSQL server of an old version that cannot be installed on the test machine. The fake server can only
 * report its version.
 */
import { type AddressInfo, createServer } from 'node:net'

export type FakePostgres = AsyncDisposable & { url: string }

const message = (type: string, ...parts: Buffer[]): Buffer => {
  const body = Buffer.concat(parts)
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
const int16 = (value: number) => {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}
const int32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}
const text = (value: string) => Buffer.from(`${value}\0`)

const READY = message('Z', Buffer.from('I'))
const column = (name: string, type: number) =>
  Buffer.concat([text(name), int32(0), int16(0), int32(type), int16(-1), int32(-1), int16(0)])
const TEXT = 25
const INT4 = 23

/**
 * Starts a fake PostgreSQL server that answers every query with the text `version` and the same version as a number.
 */
export async function startFakePostgres({ version }: { version: string }): Promise<FakePostgres> {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const values = [version, String(major * 10_000 + minor)].map((value) => Buffer.from(value))
  const answer = Buffer.concat([
    message('T', int16(2), column('version', TEXT), column('number', INT4)),
    message('D', int16(2), ...values.flatMap((value) => [int32(value.length), value])),
    message('C', text('SELECT 1')),
    READY,
  ])
  const server = createServer((socket) => {
    let greeted = false
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      if (!greeted) socket.write(Buffer.concat([message('R', int32(0)), READY]))
      else if (chunk[0] === 'Q'.charCodeAt(0)) socket.write(answer)
      greeted = true
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `postgres://purser:x@127.0.0.1:${port}/purser`,
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
