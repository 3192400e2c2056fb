/** Tests that a slow mail host delays no other recipient of the same mail. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createSecretKey } from 'node:crypto'
import type {
  RecipientOutcome,
  RecordedOutcome,
} from '../../../../sql/mail/outbound/mailAttempts.ts'
import { recordMailAttempts } from '../../../../sql/mail/outbound/mailAttempts.ts'
import { sendConsignments } from '../../../../workers/mail/outbound/consignments.ts'
import type { Report } from '../../../../workers/mail/outbound/transport.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { silentLog } from '../../../support/logs.ts'
import { begin, newSent, recipientsOf, type SentRow } from '../../../support/mail/mailRows.ts'
import { waitFor } from '../../../support/waitFor.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

type Options = {
  /** Sets the time limit of one run of the sending job. */
  runMaxMs?: number
  /**
   * Maps a recipient domain to the milliseconds until its next sending attempt is due. All other domains are due now.
   */
  laterInMs?: Record<string, number>
  /** Returns the error that is thrown when the outcomes of the recipients are recorded. */
  fault?: () => Error
}
type Host = (report: Report, to: string[]) => Promise<void>

/**
 * Sends one mail to several domains. @param hosts says how the mail host of each domain answers. @param refusals counts
 * how often each lane (the queue of one destination) still refuses the mail.
 */
async function sendTo(
  hosts: Record<string, Host>,
  refusals: Record<string, number> = {},
  { runMaxMs = 60_000, laterInMs = {}, fault }: Options = {},
): Promise<{
  sent: SentRow
  parts: { outcomes: RecordedOutcome[]; last: boolean }[]
  run: Promise<void>
}> {
  const sent = await newSent(pool, { to: Object.keys(hosts).map((domain) => `a@${domain}`) })
  const mail = await begin(pool, sent)
  mail.later = Object.entries(laterInMs).map(([domain, inMs]) => ({
    ...{ address: `a@${domain}`, attempts: 0, at: new Date(Date.now() + inMs) },
  }))
  const parts: { outcomes: RecordedOutcome[]; last: boolean }[] = []
  const enter = async (lane: string) => {
    if ((refusals[lane] ?? 0) === 0) return { granted: true, waited: false, leave: () => {} }
    refusals[lane]!--
    return { granted: false, returnInMs: 20 }
  }
  const run = sendConsignments(
    { pool, log: silentLog, lanes: { enter } } as never,
    Object.keys(hosts).map((domain) => ({ lane: domain, to: [`a@${domain}`] })),
    {
      mail,
      bounceKeys: [createSecretKey(Buffer.alloc(32))],
      message: async () => ({ bytes: Buffer.from('mail') }),
      transport: {
        route: 'direct',
        send: ({ envelopes }: { envelopes: { to: string }[] }, report: Report) => {
          const to = envelopes.map((one) => one.to)
          return hosts[to[0]!.split('@')[1]!]!(report, to)
        },
      } as never,
      settle: (outcomes: readonly RecipientOutcome[]) =>
        outcomes.map((one) => ({
          ...one,
          nextAttemptAt: one.state === 'deferred' ? new Date(Date.now() + 20) : null,
        })),
      async record(outcomes, last) {
        if (fault !== undefined) throw fault()
        parts.push({ outcomes, last })
        await recordMailAttempts(pool, [
          {
            ...{ messageRow: mail.messageRow, projectId: mail.projectId, attempt: mail.attempt },
            ...{ rawId: null, envelopeFrom: mail.fromAddress, recipients: outcomes },
            ...{ localInboxes: [], last },
          },
        ])
      },
    },
    { runMaxMs },
  )
  return { sent, parts, run }
}

const accept: Host = (report, to) =>
  report(to.map((address) => ({ address, state: 'sent', error: null })))
const stateOf = async (sent: SentRow, address: string) =>
  (await recipientsOf(pool, sent)).find((one) => one.address === address)!.state
const lastOf = (parts: { last: boolean }[]) => parts.filter(({ last }) => last).length

test('a mail host that hangs does not delay recipients that wait in the lane (queue) of another mail host', async () => {
  const held = Promise.withResolvers<void>()
  const hanging: Host = async (report, to) => {
    await held.promise
    await accept(report, to)
  }
  const refusals = { 'late.test': 3, 'later.test': 5 }
  const { sent, parts, run } = await sendTo(
    { 'slow.test': hanging, 'late.test': accept, 'later.test': accept },
    refusals,
  )
  for (const name of ['late', 'later']) {
    await waitFor(name, async () => (await stateOf(sent, `a@${name}.test`)) === 'sent')
  }
  expect(await stateOf(sent, 'a@slow.test')).toBe('queued')
  held.resolve()
  await run
  expect(await stateOf(sent, 'a@slow.test')).toBe('sent')
  expect([lastOf(parts), parts.at(-1)!.last]).toEqual([1, true])
})

test('while one mail host hangs, a deferred recipient of another domain is tried again when the next attempt is due', async () => {
  const held = Promise.withResolvers<void>()
  let tries = 0
  const { sent, run } = await sendTo({
    'slow.test': async (report, to) => {
      await held.promise
      await accept(report, to)
    },
    'grey.test': async (report, to) => {
      if (++tries === 3) return await accept(report, to)
      await report(to.map((address) => ({ address, state: 'deferred', error: '450 later' })))
    },
  })
  await waitFor('the third try', async () => (await stateOf(sent, 'a@grey.test')) === 'sent')
  const grey = (await recipientsOf(pool, sent)).find(({ address }) => address === 'a@grey.test')
  expect(grey!.attempts).toBe(3)
  held.resolve()
  await run
})

test('a deferred recipient is not tried again in the same run of the sending job if the recipient is suppressed or the mail is deleted', async () => {
  for (const remove of [
    (sent: SentRow) =>
      pool.query(
        `insert into suppressions (project_id, address, reason) values ($1, 'a@grey.test', 'bounce')`,
        [sent.projectId],
      ),
    (sent: SentRow) => pool.query('delete from messages where row = $1', [sent.row]),
  ]) {
    const held = Promise.withResolvers<void>()
    const removed = Promise.withResolvers<void>()
    let tries = 0
    const { sent, run } = await sendTo({
      'slow.test': async (report, to) => {
        await held.promise
        await accept(report, to)
      },
      'grey.test': async (report, to) => {
        tries++
        await removed.promise
        await report(to.map((address) => ({ address, state: 'deferred', error: '450 later' })))
      },
    })
    await waitFor('the first try', () => tries === 1)
    await remove(sent)
    removed.resolve()
    // The test waits until the second attempt would have been due, and only then lets the hanging mail host end.
    await Bun.sleep(60)
    held.resolve()
    await run
    expect(tries).toBe(1)
  }
})

test('if every lane (the queue of one destination) refuses the mail, the attempt ends at once and records when each recipient is tried again', async () => {
  const { sent, parts, run } = await sendTo(
    { 'a.test': accept, 'b.test': accept, 'c.test': accept },
    { 'a.test': 9, 'b.test': 9, 'c.test': 9 },
  )
  await run
  expect(parts).toHaveLength(1)
  expect([parts[0]!.last, parts[0]!.outcomes.map(({ state }) => state)]).toEqual([
    true,
    ['postponed', 'postponed', 'postponed'],
  ])
  expect((await recipientsOf(pool, sent)).map(({ attempts }) => attempts)).toEqual([0, 0, 0])
})

test('if the transport throws an error for one domain, the recipients in this domain are deferred, and the other recipients get their mail', async () => {
  const { sent, parts, run } = await sendTo({
    'good.test': accept,
    'bad.test': () => Promise.reject(new Error('a secret detail')),
  })
  await run
  const states = (await recipientsOf(pool, sent)).map(({ state, error }) => [state, error])
  expect(states).toEqual([
    ['deferred', '451 4.3.0 The service could not send this copy now'],
    ['sent', null],
  ])
  expect(lastOf(parts)).toBe(1)
})

test('if the transport fails after all outcomes of one domain, the attempt goes on until the last domain has answered', async () => {
  const held = Promise.withResolvers<void>()
  const { sent, parts, run } = await sendTo({
    'slow.test': async (report, to) => {
      await held.promise
      await accept(report, to)
    },
    'bad.test': async (report, to) => {
      await accept(report, to)
      setImmediate(held.resolve)
      throw new Error('the connection broke')
    },
  })
  await run
  expect((await recipientsOf(pool, sent)).map(({ state }) => state)).toEqual(['sent', 'sent'])
  expect(parts.map(({ last }) => last)).toEqual([false, true])
})

test('if the outcome of a recipient cannot be recorded because the database is unavailable, the job fails and is tried again', async () => {
  const away = Object.assign(new Error('the connection broke'), { code: '08006' })
  const { run } = await sendTo({ 'bad.test': () => Promise.reject(away) })
  expect(await run.catch((error) => error)).toBe(away)
})

test('a recipient whose next attempt becomes due while another mail host hangs is tried in the same job run', async () => {
  const held = Promise.withResolvers<void>()
  const hosts = {
    'slow.test': async (report: Report, to: string[]) => {
      await held.promise
      await accept(report, to)
    },
    'later.test': accept,
    'tomorrow.test': accept,
  }
  const laterInMs = { 'later.test': 30, 'tomorrow.test': 24 * 60 * 60_000 }
  const { sent, parts, run } = await sendTo(hosts, {}, { laterInMs })
  await waitFor('the later recipient', async () => (await stateOf(sent, 'a@later.test')) === 'sent')
  held.resolve()
  await run
  expect(await stateOf(sent, 'a@tomorrow.test')).toBe('queued')
  expect(lastOf(parts)).toBe(1)
})

test('a run of the sending job ends after the last mail host has answered, and leaves a recipient whose next attempt is not due to the next run', async () => {
  const hosts = { 'quick.test': accept, 'later.test': accept }
  const { sent, parts, run } = await sendTo(hosts, {}, { laterInMs: { 'later.test': 50_000 } })
  await run
  expect(await stateOf(sent, 'a@quick.test')).toBe('sent')
  expect(await stateOf(sent, 'a@later.test')).toBe('queued')
  expect(lastOf(parts)).toBe(1)
})

test('after an hour a run of the sending job makes no more attempts, so that it ends before the job queue starts the job a second time', async () => {
  const held = Promise.withResolvers<void>()
  const startRun = async (options: Options) => {
    const tries = { count: 0 }
    const hosts = {
      'slow.test': async (report: Report, to: string[]) => {
        await held.promise
        await accept(report, to)
      },
      'grey.test': async (report: Report, to: string[]) => {
        tries.count++
        await report(to.map((address) => ({ address, state: 'deferred', error: '450 later' })))
      },
    }
    return { tries, ...(await sendTo(hosts, {}, options)) }
  }
  const over = await startRun({ runMaxMs: 0 })
  const under = await startRun({})
  await waitFor('the tries of a run that goes on', () => under.tries.count >= 3)
  held.resolve()
  await Promise.all([over.run, under.run])
  expect(over.tries.count).toBe(1)
  expect(await stateOf(over.sent, 'a@grey.test')).toBe('deferred')
  expect(lastOf(over.parts)).toBe(1)
})
