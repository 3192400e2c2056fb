/**
 * Kills a worker while it sends a request with a secret. The request may be sent only once, and must end in the state
 * unknown.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RECOVERY_LIMIT_MS } from '../../support/process/alone.ts'
import { closeServers } from '../../support/process/localServer.ts'
import { printed, type ServiceProcess, startProcess } from '../../support/process/process.ts'
import { newCertificate, serveTls } from '../../support/process/tlsServer.ts'
import { startTestService, type TestService } from '../../support/service.ts'
import { vaultPath as path } from '../../support/vault/vault.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

const directory = mkdtempSync(join(tmpdir(), 'purser-use-'))
const caFile = join(directory, 'ca.pem')
const held: ServerResponse[] = []
let service: TestService
let port: number
beforeAll(async () => {
  const certificate = newCertificate('localhost')
  writeFileSync(caFile, certificate.ca)
  port = await serveTls(certificate, (request, response) => {
    request.resume()
    if (request.url === '/hang') held.push(response)
    else response.end('ok')
  })
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  closeServers()
  rmSync(directory, { recursive: true })
})

async function startWorker(): Promise<ServiceProcess> {
  const env = {
    DATABASE_URL: service.database.url,
    DATA_DIR: service.config.dataDir,
    ALLOW_PRIVATE_NETWORKS: 'true',
    NODE_EXTRA_CA_CERTS: caFile,
  }
  const worker = startProcess('workers/main.ts', env, ['--pool', 'vault'])
  await printed(worker, /"msg":"ready"/)
  return worker
}

test('if kill −9 ends the worker after it has sent a request with a secret, the request ends as unknown and is not sent again', async () => {
  const agent = await service.newAgent()
  const data = { password: 'correct horse' }
  const uri = `https://localhost:${port}/`
  await agent.put(path('n'), { type: 'LOGIN', data, metadata: { uri } })
  await using first = await startWorker()
  const request = { method: 'POST', url: `${uri}hang`, body: { password: '{{password}}' } }
  const key = { 'idempotency-key': 'one' }
  const { status, body } = await agent.post(path('n', '/use?timeout=0'), { request }, key)
  expect([status, body.state]).toEqual([202, 'pending'])
  await waitFor('the request', () => held.length === 1)
  first.child.kill('SIGKILL')
  await first.exited
  await using _second = await startWorker()
  const ended = await waitFor(
    'the end',
    async () => {
      const use = await agent.get(path('n', `/uses/${body.useId}?timeout=0`))
      return use.status === 200 ? use.body : null
    },
    RECOVERY_LIMIT_MS,
  )
  expect(ended).toMatchObject({
    state: 'unknown',
    response: null,
    error: 'the worker was cut off; the request was sent once or not at all',
  })
  const again = await agent.post(path('n', '/use'), { request }, key)
  expect([again.body.useId, again.body.state, held.length]).toEqual([body.useId, 'unknown', 1])
  const next = await agent.post(path('n', '/use'), { request: { url: uri } })
  expect(next.body).toMatchObject({ state: 'answered', response: { body: 'ok' } })
  const [, entry] = (await agent.get('/v0/logs?action=vault.use')).body.logs
  expect(entry).toMatchObject({
    outcome: 'failed',
    description: `POST localhost:${port}/hang unknown`,
  })
})
