import { expect, test } from 'bun:test'
import { sendMail, untilStatus } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { RECOVERY_LIMIT_MS } from '../../../support/process/alone.ts'
import { startProcess } from '../../../support/process/process.ts'
import { startTcpProxy, type TcpProxy } from '../../../support/process/tcpProxy.ts'
import { startTestService } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/whole.ts'

/** Limits how many mails one process passes to the smarthost (the mail relay) at the same time. */
const AT_ONCE = 5
/**
 * Sets the length of an outage in milliseconds. It is longer than a job waits for the database, and longer than jobs of
 * a dead pool stay locked.
 */
const AWAY_MS = 13_000

/**
 * Delays the SMTP reply that follows the data of each mail. `answer` first cuts the connection to the database, and
 * then sends the delayed replies.
 */
function cutBeforeReplies(sink: Sink, proxy: TcpProxy) {
  const gate = Promise.withResolvers<null>()
  let waiting = 0
  sink.refuseData = () => {
    waiting++
    return gate.promise
  }
  return {
    waiting: () => waiting,
    async answer() {
      await proxy.cut()
      gate.resolve(null)
    },
  }
}

async function startScene(workers: number) {
  const stack = new AsyncDisposableStack()
  const sink = stack.use(await startSink())
  const service = stack.use(await startTestService({ smtp: false, workers: false }))
  const direct = new URL(service.database.url)
  const proxy = stack.use(await startTcpProxy(Number(direct.port)))
  const env = {
    DATABASE_URL: service.database.url.replace(`:${direct.port}/`, `:${proxy.port}/`),
    SMTP_RELAY_URL: sink.url,
    MAIL_DOMAIN: 'mail.test',
    DATA_DIR: service.config.dataDir,
    LOG_LEVEL: 'silent',
  }
  const start = () => stack.use(startProcess('workers/main.ts', env, ['--pool', 'outbound']))
  const processes = Array.from({ length: workers }, start)
  return {
    sink,
    service,
    proxy,
    processes,
    start,
    agent: await service.newAgent(),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const send = async (agent: Parameters<typeof sendMail>[0], count: number): Promise<string[]> => {
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    const { messageId } = await sendMail(agent, { to: [`r${n}@example.com`] })
    ids.push(messageId)
  }
  return ids
}

test(`mails that the smarthost has accepted are not sent again if the database is unreachable for ${AWAY_MS} ms`, async () => {
  await using scene = await startScene(2)
  const { sink, proxy, agent } = scene
  const replies = cutBeforeReplies(sink, proxy)
  const ids = await send(agent, 2 * AT_ONCE)
  await waitFor('the data of mails', () => replies.waiting() >= AT_ONCE)
  await replies.answer()
  const cutMs = Date.now()
  await waitFor('the time without a database', () => Date.now() > cutMs + AWAY_MS)
  await proxy.mend()
  for (const id of ids) await untilStatus(agent, id, 'sent')
  expect(sink.mails.map(({ to }) => to[0]).toSorted()).toEqual(
    ids.map((_, n) => `r${n}@example.com`),
  )
})

test('a worker that gets the signal SIGTERM ends only after the outcome of a sent mail is recorded', async () => {
  await using scene = await startScene(1)
  const { sink, proxy, agent, processes, start } = scene
  const replies = cutBeforeReplies(sink, proxy)
  const [id] = await send(agent, 1)
  await waitFor('the data of the mail', () => replies.waiting() === 1)
  await replies.answer()
  await waitFor('the mail', () => sink.mails.length === 1)
  processes[0]!.child.kill('SIGTERM')
  const cutMs = Date.now()
  await waitFor('the time without a database', () => Date.now() > cutMs + 9_000)
  await proxy.mend()
  expect(await processes[0]!.exited).toBe(0)
  start()
  await untilStatus(agent, id!, 'sent')
  expect(sink.mails).toHaveLength(1)
  expect(Date.now() - cutMs).toBeLessThan(9_000 + RECOVERY_LIMIT_MS)
})
