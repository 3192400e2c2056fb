/** Tests that other projects are not delayed if the masking of secrets in a response takes much processor time. */
import { expect, test } from 'bun:test'
import { startReceiver } from '../../support/events/receiver.ts'
import { register, sendEvent, waitForEnd } from '../../support/events/webhooks.ts'
import { answering, closeServers } from '../../support/process/localServer.ts'
import { newCertificate, serveTls } from '../../support/process/tlsServer.ts'
import { startTestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

const WEBHOOKS = 10

test('webhooks of another project are delivered while secrets in the response of a hostile server are masked', async () => {
  let answered = false
  const certificate = newCertificate('bank.example')
  const port = await serveTls(certificate, (_request, response) => {
    response.end('a'.repeat(512 * 1024))
    answered = true
  })
  await using service = await startTestService({
    ...{ smtp: false, pools: ['webhooks', 'vault'], env: { ALLOW_PRIVATE_NETWORKS: 'true' } },
    ...{ ca: certificate.ca, resolve: answering('127.0.0.1') },
  })
  await using receiver = await startReceiver()
  const attacker = await service.newAgent()
  const victim = await service.newAgent()
  const endpoint = await register(victim, receiver.url)
  // The secret contains seven values of 8 KB with the same prefix. Previously, a separate search for each of these
  // values in a response of 1 MB took 30 s.
  const data = Object.fromEntries(
    Array.from({ length: 7 }, (_, n) => [`field${n}`, 'a'.repeat(8_190) + n]),
  )
  const url = `https://bank.example:${port}/`
  await attacker.put('/v0/vault/dear', { type: 'CUSTOM', data, metadata: { uri: url } })
  const { body: begun } = await attacker.post('/v0/vault/dear/use?timeout=0', { request: { url } })
  const use = async () => (await attacker.get(`/v0/vault/dear/uses/${begun.useId}?timeout=0`)).body
  await waitFor('the answer of the server', async () => answered)
  for (let n = 0; n < WEBHOOKS; n++) {
    await waitForEnd(victim, await sendEvent(service.database, victim, endpoint))
  }
  expect(receiver.requests).toHaveLength(WEBHOOKS)
  expect(await use()).toMatchObject({ state: 'pending' })
  const end = await waitFor('the end of the use', async () => {
    const seen = await use()
    return seen.state === 'pending' ? null : seen
  })
  expect(end).toMatchObject({ state: 'answered', response: { status: 200 } })
  closeServers()
})
