/** Tests how the doctor (the service's self-check) examines SMTP servers that break the protocol. */
import { afterAll, expect, test } from 'bun:test'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import { lookAtSmtp } from '../../../../workers/operations/doctor/smtpLook.ts'
import { closeServers, serveRaw } from '../../../support/process/localServer.ts'
import { newCertificate } from '../../../support/process/tlsServer.ts'

const MX = 'mx.a.example'
afterAll(closeServers)

const lookAt = (port: number, more: Partial<Parameters<typeof lookAtSmtp>[0]> = {}) =>
  lookAtSmtp({ host: '127.0.0.1', port, ownName: MX, servername: MX, ...more })

test('the doctor (self-check) reads the extensions that a mail host lists in its reply to EHLO', async () => {
  const port = await serveRaw((socket) => {
    socket.write('220 ready\r\n')
    socket.on('data', () => socket.write('250-a\r\n250 SIZE 10\r\n'))
  })
  const extensions = ['A', 'SIZE 10']
  expect(await lookAt(port)).toEqual({ reached: 'answered', extensions, certificate: null })
})

test('a mail host that refuses the connection in its greeting counts as unreachable', async () => {
  const port = await serveRaw((socket) => {
    socket.write('554 no service\r\n')
    socket.on('data', () => socket.write('250 hello\r\n'))
  })
  expect(await lookAt(port)).toEqual({ reached: 'unreachable' })
})

test('a mail host that closes the connection without a greeting counts as unreachable', async () => {
  const port = await serveRaw((socket) => void socket.end())
  expect(await lookAt(port)).toEqual({ reached: 'unreachable' })
})

test('a mail host whose greeting never ends counts as unreachable', async () => {
  const port = await serveRaw((socket) => void socket.write('x'.repeat(10_241)))
  expect(await lookAt(port)).toEqual({ reached: 'unreachable' })
})

test('the doctor (self-check) reads the certificate of a mail host that uses TLS from the first byte', async () => {
  const { key, ca } = newCertificate(MX)
  const heard: string[] = []
  const server = createServer({ key, cert: ca }, (socket) => {
    socket.write('220 ready\r\n')
    socket
      .on('error', () => {})
      .on('data', (chunk) => {
        heard.push(chunk.toString())
        socket.write('250 hello\r\n')
      })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  expect(await lookAt(port, { isImplicit: true, ca })).toMatchObject({
    reached: 'answered',
    certificate: { fits: true, trusted: true },
  })
  server.close()
  expect(heard).toEqual([`EHLO ${MX}\r\n`])
})
