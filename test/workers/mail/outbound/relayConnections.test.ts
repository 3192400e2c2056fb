/** Tests that mail of the service itself has its own connections to the smarthost. */
import { expect, test } from 'bun:test'
import pino from 'pino'
import { createRelayTransport } from '../../../../workers/mail/outbound/relayTransport.ts'
import { startSink } from '../../../support/mail/sink.ts'
import { waitFor } from '../../../support/waitFor.ts'

test('a sign-in mail does not wait while the mails of projects occupy all their connections', async () => {
  await using sink = await startSink()
  const { promise: gate, resolve: accept } = Promise.withResolvers<null>()
  let held = 0
  sink.refuseData = () => {
    held++
    return gate
  }
  const transport = createRelayTransport(
    { relayUrl: sink.url, relayTls: 'opportunistic', relayCaFile: undefined },
    { ownName: 'mail.test', log: pino({ level: 'silent' }) },
  )
  const send = async (from: string, count: number) => {
    const states: string[] = []
    const envelopes = Array.from({ length: count }, (_, n) => ({ from, to: `to${n}@example.net` }))
    const raw = Buffer.from('Subject: x\r\n\r\nx\r\n')
    await transport.send({ envelopes, raw }, async (outcomes) => {
      states.push(...outcomes.map(({ state }) => state))
    })
    return states
  }
  const ofProjects = send('bounce@mail.test', 8)
  await waitFor('all connections of projects', () => held === 5)
  sink.refuseData = () => null
  expect(await send('', 1)).toEqual(['sent'])
  expect(held).toBe(5)
  accept(null)
  expect(await ofProjects).toEqual(Array<string>(8).fill('sent'))
  transport.close()
})
