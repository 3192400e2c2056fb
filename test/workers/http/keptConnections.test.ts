import { afterAll, expect, test } from 'bun:test'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { guardedRequest, keepConnections } from '../../../workers/http/guardedRequest.ts'
import { shortestMs } from '../../support/process/shortestMs.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/process/alone.ts'

const connections = { opened: 0, closed: 0 }
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    response.end(request.url === '/large' ? Buffer.alloc(200_000) : 'ok')
  })
})
server.on('connection', (socket) => {
  connections.opened++
  socket.on('close', () => connections.closed++)
})
await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
const { port } = server.address() as AddressInfo
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const by = keepConnections()
const send = (owner: string, path = '/', allowPrivate = true) =>
  guardedRequest({
    ...{ url: `http://127.0.0.1:${port}${path}`, method: 'POST', body: 'x', timeoutMs: 60_000 },
    ...{ allowPrivate, kept: { by, owner } },
  })

test('HTTP requests of one project share a connection, and neither other projects nor requests to a blocked address use this connection', async () => {
  for (let n = 0; n < 5; n++) expect((await send('a')).ok).toBe(true)
  expect(connections.opened).toBe(1)
  expect((await send('b')).ok).toBe(true)
  expect(connections.opened).toBe(2)
  expect(await send('a', '/', false)).toMatchObject({ kind: 'blocked' })
  expect(connections.opened).toBe(2)
})

test('an unused HTTP connection is closed within a second, before the first webhook retry', async () => {
  const idleMs = await shortestMs(1_000, async () => {
    await send('a')
    const startedMs = performance.now()
    await waitFor('no connection', () => connections.closed === connections.opened)
    return performance.now() - startedMs
  })
  expect(idleMs).toBeLessThan(1_000)
})

test('after a truncated response, the HTTP connection is closed', async () => {
  const { opened } = connections
  expect(await send('c', '/large')).toMatchObject({ ok: true, truncated: true })
  expect((await send('c')).ok).toBe(true)
  expect(connections.opened).toBe(opened + 2)
})
