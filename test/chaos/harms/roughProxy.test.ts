import { expect, test } from 'bun:test'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { waitFor } from '../../support/waitFor.ts'
import { startRoughProxy } from './roughProxy.ts'

/** Starts a server that answers the first bytes of each connection with its own name, and keeps the connection open. */
async function startNamed(name: string) {
  const server: Server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => socket.write(name))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return { port: (server.address() as AddressInfo).port, close: () => server.close() }
}

/** Starts a client that sends a greeting through the proxy. */
function greet(port: number) {
  const client = { heard: '', closed: false, end: () => socket.destroy() }
  const socket = connect(port, '127.0.0.1', () => socket.write('hello'))
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    client.heard += chunk
  })
  socket.on('close', () => {
    client.closed = true
  })
  return client
}

test('the test proxy forwards a new connection to its current target', async () => {
  const [one, two] = [await startNamed('one'), await startNamed('two')]
  await using proxy = await startRoughProxy(one.port)
  const first = greet(proxy.port)
  await waitFor('an answer of the first', () => first.heard === 'one')
  proxy.target = two.port
  const second = greet(proxy.port)
  await waitFor('an answer of the second', () => second.heard === 'two')
  for (const part of [first, second]) part.end()
  for (const part of [one, two]) part.close()
})

test('the test proxy can break a connection in the middle of a response', async () => {
  const server = await startNamed('a long answer')
  await using proxy = await startRoughProxy(server.port)
  proxy.breaking = () => ({ way: 'answer', afterBytes: 6 })
  const client = greet(proxy.port)
  await waitFor('the break', () => client.closed)
  expect(client.heard).toBe('a long')
  server.close()
})

test('bytes that the test proxy holds back arrive after the test releases them', async () => {
  const server = await startNamed('late')
  await using proxy = await startRoughProxy(server.port)
  proxy.hold()
  const client = greet(proxy.port)
  await waitFor('the connection', () => proxy.open === 1)
  expect(client.heard).toBe('')
  proxy.release()
  await waitFor('the answer', () => client.heard === 'late')
  client.end()
  server.close()
})

test('the test proxy can cut one connection, or all connections at once', async () => {
  const server = await startNamed('here')
  await using proxy = await startRoughProxy(server.port)
  const clients = [greet(proxy.port), greet(proxy.port), greet(proxy.port)]
  await waitFor('every answer', () => clients.every(({ heard }) => heard === 'here'))
  expect(proxy.cut((count) => count - 1)).toBe(1)
  await waitFor('one end', () => clients.filter(({ closed }) => closed).length === 1)
  await waitFor('two connections', () => proxy.open === 2)
  expect(proxy.cut()).toBe(2)
  await waitFor('every end', () => clients.every(({ closed }) => closed))
  server.close()
})
