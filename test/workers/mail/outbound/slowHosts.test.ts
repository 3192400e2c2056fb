import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { createServer, type Server, type Socket } from 'node:net'
import { fakeDns, type Zone } from '../../../support/mail/fakeDns.ts'
import { sendMail, untilStatus } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { startTestService, type TestService, waitForMessages } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

const HANGING = ['127.0.0.11', '127.0.0.12', '127.0.0.13', '127.0.0.14']

let good: Sink
let hanging: Sink[]
let silent: Server
const waiting: Socket[] = []
let service: TestService
beforeAll(async () => {
  good = await startSink({ host: '127.0.0.10' })
  const { port } = good
  hanging = await Promise.all(HANGING.map((host) => startSink({ host, port })))
  silent = createServer((socket) => {
    waiting.push(socket.on('error', () => {}))
  })
  await new Promise<void>((resolve) => silent.listen(port, '127.0.0.15', resolve))
})
afterAll(async () => {
  silent.close()
  for (const sink of [good, ...hanging]) await sink[Symbol.asyncDispose]()
})
beforeEach(async () => {
  const a: Zone['a'] = { 'good.test': ['127.0.0.10'], 'new.test': ['127.0.0.10'] }
  for (const [n, host] of HANGING.entries()) a[`hanging${n}.test`] = [host]
  for (let n = 0; n < 16; n++) a[`silent${n}.test`] = ['127.0.0.15']
  service = await startTestService({
    env: { SMTP_RELAY_URL: 'direct', ALLOW_PRIVATE_NETWORKS: 'true' },
    dns: fakeDns({ a }),
    directPort: good.port,
  })
})
afterEach(() => service[Symbol.asyncDispose]())

test('if the hosts of some mail domains stop answering, mail to other domains and local mail is not delayed', async () => {
  const [writer, other, inbox] = [
    await service.newAgent(),
    await service.newAgent(),
    await service.newAgent(),
  ]
  for (const domain of ['hanging0', 'hanging1', 'hanging2', 'hanging3', 'good']) {
    const { messageId } = await sendMail(writer, { to: [`a@${domain}.test`] })
    await untilStatus(writer, messageId, 'sent')
  }
  const { promise, resolve: release } = Promise.withResolvers<null>()
  const open = HANGING.map(() => 0)
  for (const [n, sink] of hanging.entries()) {
    sink.refuseData = () => {
      open[n]!++
      return promise
    }
  }
  try {
    const held = await Promise.all(
      HANGING.flatMap((_, n) =>
        Array.from({ length: 10 }, () => sendMail(writer, { to: [`b@hanging${n}.test`] })),
      ),
    )
    await waitFor('each host to hang', () => open.every((count) => count > 0))
    for (const [n, agent] of [other, writer].entries()) {
      const away = await sendMail(agent, { to: ['a@good.test'] })
      await untilStatus(agent, away.messageId, 'sent')
      const local = await sendMail(agent, { to: [inbox.address, 'c@hanging0.test'] })
      const [newest] = await waitForMessages(inbox, n + 1)
      expect(newest.messageId).toBe(local.messageId)
    }
    release(null)
    for (const { messageId } of held) await untilStatus(writer, messageId, 'sent')
  } finally {
    release(null)
  }
})

test('mail hosts that never send a greeting do not delay another project’s mail to a new domain', async () => {
  const [one, two, third] = [
    await service.newAgent(),
    await service.newAgent(),
    await service.newAgent(),
  ]
  for (let n = 0; n < 8; n++) {
    await sendMail(one, { to: [`a@silent${n}.test`] })
    await sendMail(two, { to: [`a@silent${n + 8}.test`] })
  }
  await waitFor('the silent host to be waited for', () => waiting.length >= 12)
  const { messageId } = await sendMail(third, { to: ['a@new.test'] })
  await untilStatus(third, messageId, 'sent')
  for (const socket of waiting) socket.destroy()
})

test('a smarthost that hangs does not delay mail between inboxes of the service', async () => {
  const [sink] = hanging as [Sink]
  await using relayed = await startTestService({ env: { SMTP_RELAY_URL: sink.url } })
  const [writer, inbox] = [await relayed.newAgent(), await relayed.newAgent()]
  const { promise, resolve: release } = Promise.withResolvers<null>()
  let open = 0
  sink.refuseData = () => {
    open++
    return promise
  }
  try {
    const held = await Promise.all(Array.from({ length: 40 }, () => sendMail(writer)))
    await waitFor('the smarthost to hang', () => open > 0)
    const { messageId } = await sendMail(writer, { to: [inbox.address] })
    expect((await waitForMessages(inbox, 1))[0].messageId).toBe(messageId)
    release(null)
    for (const one of held) await untilStatus(writer, one.messageId, 'sent')
  } finally {
    release(null)
  }
})
