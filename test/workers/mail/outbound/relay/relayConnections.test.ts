/** Tests that mail of the service itself has its own connections to the smarthost. */
import { expect, test } from 'bun:test'
import pino from 'pino'
import { createRelayTransport } from '../../../../../workers/mail/outbound/relay/relayTransport.ts'
import { startSink } from '../../../../support/mail/sink.ts'
import { waitFor } from '../../../../support/waitFor.ts'

const relayTo = (relayUrl: string, idleMaxMs?: number) =>
  createRelayTransport(
    { relayUrl, relayTls: 'opportunistic', relayCaFile: undefined },
    {
      ...{ ownName: 'mail.test', log: pino({ level: 'silent' }) },
      ...(idleMaxMs === undefined ? {} : { idleMaxMs }),
    },
  )

test('a sign-in mail does not wait while the mails of projects occupy all the connections for projects', async () => {
  await using sink = await startSink()
  const { promise: gate, resolve: accept } = Promise.withResolvers<null>()
  let held = 0
  sink.refuseData = () => {
    held++
    return gate
  }
  const transport = relayTo(sink.url)
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

test('mails that follow each other share a connection, and a mail after an idle time uses a new connection', async () => {
  await using sink = await startSink()
  const transport = relayTo(sink.url, 100)
  const send = () =>
    transport.send(
      {
        envelopes: [{ from: 'bounce@mail.test', to: 'to@example.net' }],
        raw: Buffer.from('Subject: x\r\n\r\nx\r\n'),
      },
      async () => {},
    )
  // Each mail is sent before the idle limit ends, so all mails use one connection. A slow machine may need another
  // connection.
  for (let n = 0; n < 20; n++) await send()
  const before = sink.connections
  expect(before).toBeLessThan(20)
  await waitFor('the connection to close', () => sink.open() === 0)
  await send()
  expect(sink.connections).toBe(before + 1)
  transport.close()
})
