/** Takes a backup under load, and restores it into another folder with another database server. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { PurserEvent } from '../../api/client/events.ts'
import { type Jwks, verifyReceipt } from '../../api/client/main.ts'
import { Purser } from '../../api/client/purser.ts'
import type { Pool } from '../../sql/db.ts'
import { deliverMail, messagePath } from '../support/service.ts'
import { pay } from '../support/till/till.ts'
import { waitFor } from '../support/waitFor.ts'
import { type Database, removeDatabases, type Server, startDatabase } from './restore/databases.ts'
import {
  type Installation,
  inDatabase,
  newSettings,
  type Settings,
  setUp,
  startInstallation,
} from './restore/installation.ts'
import { type Done, isSent, type Load, redeem, SENDERS, send, startLoad } from './restore/load.ts'
import { type Surroundings, startSurroundings } from './restore/surroundings.ts'
import '../support/whole.ts'

/**
 * Sets the number of actions of each kind that the test clients must complete before the backup begins, and again after
 * the backup.
 */
const ENOUGH = 6

let around: Surroundings
let settings: Settings
let database: Database
let other: Server | undefined
let restored: Installation
let restoredDir: string
let inbox: string
/**
 * The following two variables hold the API responses to clients. `before` holds the responses until the backup began,
 * and `done` holds the responses until the load ended.
 */
let before: Known
let done: Done
let backupEndedMs: number
/** Holds the unfinished work that the backup contains. */
let held: Held
/**
 * The following variables hold the records of the chain, the smarthost and the webhook receiver at the end of the first
 * installation.
 */
let used: Map<string, string[]>
let webhooks: ReturnType<Surroundings['webhooks']>
let mails: ReturnType<Surroundings['mails']>
let ends: { firstExit: number | string; lastEventId: string }
let follower: { known: PurserEvent[]; ahead: PurserEvent[] }
const followed = new AbortController()
/** Holds a payment whose transaction waits for a block while the test restores the service. */
let unmined: Redeem
/** Holds the responses that the restored service gives to redeem calls for new payments. */
let newGrants: Promise<{ ok: boolean }[]>
type Redeem = Parameters<typeof redeem>[1]

/** Returns a signed payment that is valid for longer than the whole test. */
async function newRedeem(key: string): Promise<Redeem> {
  const { header } = await pay({ validBefore: BigInt(Math.floor(Date.now() / 1000) + 600) })
  return { resource: around.resource, header, key }
}

beforeAll(async () => {
  around = await startSurroundings()
  settings = await newSettings(around)
  const firstDir = join(around.folder, 'first')
  restoredDir = join(around.folder, 'elsewhere', 'restored')
  const lastIds: string[] = []
  {
    database = await startDatabase()
    await using first = await startInstallation({ ...settings, ...database.settings }, firstDir)
    ;({ inbox } = await setUp(first, settings, around))
    const listening = new AbortController()
    void follow(first, '0', listening.signal, ({ id }) => lastIds.push(id))
    unmined = await newRedeem('unmined')
    const load = startLoad({
      agent: first.agent,
      inbox,
      smtpPort: Number(settings.SMTP_PORT),
      resource: around.resource,
    })
    await enough(load, 0)
    const unsigned = await hold(first)
    before = await look(first, load, lastIds)
    const parts = 'DATABASE_URL' in database.settings ? 'the spool' : 'the spool and the database'
    expect(await first.backUp(restoredDir)).toBe(`${restoredDir} holds ${parts}\n`)
    database.backUp()
    backupEndedMs = performance.now()
    await release()
    await waitFor('the payment that waited', async () => {
      return (await redeem(first.agent, unsigned)).body.ok
    })
    await enough(load, backupEndedMs)
    await load.stop()
    ;({ done } = load)
    await waitFor('the webhooks', () => around.webhooks().size >= done.received.length)
    listening.abort()
    // The backup does not contain the transaction of this payment, so the restored service believes that the
    // transaction's nonce is unused.
    await around.client.setAutomine(false)
    expect((await redeem(first.agent, unmined)).body).toMatchObject({
      reason: 'settlement_pending',
      txHash: expect.any(String),
    })
    ends = { firstExit: await first.stop(), lastEventId: lastIds.at(-1)! }
  }
  expect(await around.unmined()).toBe(1)
  used = await around.usedOnChain()
  webhooks = around.webhooks()
  mails = around.mails()
  database.stop()
  other = await database.restore()
  settings = { ...settings, ...other.settings }
  held = await inDatabase(settings, restoredDir, readHeld)
  restored = await startInstallation(settings, restoredDir)
  follower = { known: [], ahead: [] }
  const { signal } = followed
  void follow(restored, before.lastEventId, signal, (event) => follower.known.push(event))
  void follow(restored, ends.lastEventId, signal, (event) => follower.ahead.push(event))
  newGrants = payAnew(restored)
})

afterAll(async () => {
  followed.abort()
  await restored?.[Symbol.asyncDispose]()
  other?.stop()
  removeDatabases()
  await around?.[Symbol.asyncDispose]()
})

/** Redeems the payment whose transaction waits for a block, and three new payments. */
async function payAnew({ agent }: Installation): Promise<{ ok: boolean }[]> {
  const payments = await Promise.all([1, 2, 3].map((n) => newRedeem(`after-${n}`)))
  const answers = Promise.all(
    [unmined, ...payments].map((wanted) =>
      waitFor(
        'the payment',
        async () => {
          const { body } = await redeem(agent, wanted)
          return body.reason === 'settlement_pending' ? null : body
        },
        60_000,
      ),
    ),
  )
  // The first new payment has the same nonce as the transaction that was sent before the restore. Several new payments
  // may share one transaction, so the test counts payments and not transactions.
  await waitFor('the signed payments', async () => {
    const { body } = await agent.get('/v0/payments')
    const signed = body.payments.filter((one: any) => one.status === 'verified' && one.txHash)
    return signed.length >= 4
  })
  await around.client.setAutomine(true)
  await around.client.mine({ blocks: 1 })
  return answers
}

/** Waits until the clients have completed ENOUGH actions of each kind after the given time. */
async function enough({ done }: Load, sinceMs: number): Promise<void> {
  const begin = { ...counts(done) }
  await waitFor(
    'enough payments',
    () => {
      const since = done.payments.filter(
        ({ begunMs, grantedMs }) => begunMs > sinceMs && grantedMs !== null,
      )
      return since.length >= ENOUGH
    },
    60_000,
  )
  await waitFor(
    'enough of the rest',
    () => {
      const now = counts(done)
      return (['received', 'sent', 'secrets'] as const).every(
        (kind) => now[kind] >= begin[kind] + ENOUGH,
      )
    },
    60_000,
  )
}

const counts = ({ received, sent, secrets }: Done) => ({
  received: received.length,
  sent: sent.length,
  secrets: secrets.length,
})

/**
 * Begins work of every kind and prevents its end. A mail waits for the reply of its SMTP server, and a webhook waits
 * for its HTTP response. One payment waits for a block, and another payment waits for a response of the chain node.
 */
async function hold({ agent }: Installation) {
  const { gates, client, rpc } = around
  gates.mail.close()
  gates.webhooks.close()
  await waitFor('the mail under way', () => gates.mail.waiting === SENDERS)
  await waitFor('a webhook under way', () => gates.webhooks.waiting > 0)
  await client.setAutomine(false)
  await waitFor('a payment without a block', async () => (await around.unmined()) > 0)
  rpc.fault = { status: 503 }
  const unsigned = await newRedeem('unsigned')
  expect((await redeem(agent, unsigned)).body).toMatchObject({ reason: 'settlement_pending' })
  return unsigned
}

async function release(): Promise<void> {
  const { gates, client, rpc } = around
  rpc.fault = null
  await client.setAutomine(true)
  await client.mine({ blocks: 1 })
  gates.mail.open()
  gates.webhooks.open()
}

/** Follows the event stream of the project until the signal is aborted. */
async function follow(
  { url, key }: Installation,
  lastEventId: string,
  signal: AbortSignal,
  hear: (event: PurserEvent) => void,
): Promise<void> {
  const purser = new Purser({ apiKey: key, baseUrl: url })
  try {
    for await (const event of purser.events({ lastEventId }, { signal })) hear(event)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

type Known = Awaited<ReturnType<typeof look>>

/**
 * Reads the objects that the test clients know before the backup begins, and how the API shows these objects.
 */
async function look({ agent }: Installation, { done }: Load, lastIds: string[]) {
  const ask = async (path: string) => [path, (await agent.get(path)).body] as const
  const granted = done.payments.filter(({ grantedMs }) => grantedMs !== null)
  const payments = granted.map(({ paymentId }) => `/v0/payments/${paymentId}`)
  const { body } = await agent.get('/v0/webhooks/deliveries?status=delivered&limit=100')
  const sent: Done['sent'] = []
  for (const mail of done.sent) if (await isSent(agent, mail.messageId)) sent.push(mail)
  return {
    lastEventId: lastIds.at(-1)!,
    messages: await Promise.all(done.received.map((id) => ask(messagePath(id)))),
    secrets: [...done.secrets],
    sent,
    granted: [...granted],
    payments: await Promise.all(payments.map(ask)),
    delivered: body.deliveries.map((one: any) => one.idempotencyKey) as string[],
  }
}

type Held = Awaited<ReturnType<typeof readHeld>>

/** Reads from the restored database the work that was unfinished when the backup was made. */
async function readHeld(pool: Pool) {
  const list = async (text: string) => (await pool.query(text)).rows
  return {
    locked: await list(
      `select task_identifier as task from graphile_worker.jobs where locked_by is not null`,
    ),
    payments: (await list(
      `select id, lower(authorization_nonce) as nonce, exists (
         select from transaction_payments m join chain_transactions t on t.hash = m.hash
         where m.payment_id = p.id and t.state = 'open') as signed
       from payments p where state = 'verified'`,
    )) as { id: string; nonce: string; signed: boolean }[],
    nonces: (await list(`select lower(authorization_nonce) as nonce from payments`)).map(
      ({ nonce }) => nonce as string,
    ),
    pending: (await list(
      `select idempotency_key as key from webhook_deliveries where status = 'pending'`,
    )) as { key: string }[],
    unsent: (await list(
      `select m.message_id as id from outbound_mails o join messages m on m.row = o.message_row where o.state <> 'done'`,
    )) as { id: string }[],
  }
}

test('clients get only allowed responses during the restore test, and the first installation ends with exit code 0', () => {
  expect(done.surprises).toEqual([])
  expect(ends.firstExit).toBe(0)
})

test('the backup contains unfinished work of every kind', () => {
  const tasks = new Set(held.locked.map(({ task }) => task))
  expect(tasks).toContain('send_mail')
  expect(tasks).toContain('deliver_webhook')
  expect(held.payments.map(({ signed }) => signed)).toContain(true)
  expect(held.payments.map(({ signed }) => signed)).toContain(false)
  expect(held.pending.length).toBeGreaterThan(0)
  expect(held.unsent.length).toBeGreaterThan(0)
})

describe('the restored service keeps work that was finished when the backup was made', () => {
  test('the restored service has the same messages, secrets and payments as the backup', async () => {
    const { agent } = restored
    for (const [path, answer] of before.messages) {
      expect([path, (await agent.get(path)).body]).toEqual([path, answer])
    }
    for (const { name, value } of before.secrets) {
      expect([name, (await agent.get(`/v0/vault/${name}`)).body.data]).toEqual([name, { value }])
    }
    for (const [path, answer] of before.payments) {
      const { status, txHash, signedReceipt, settledAt } = answer
      expect((await agent.get(path)).body).toMatchObject({
        status,
        txHash,
        signedReceipt,
        settledAt,
      })
    }
  })

  test('after the restore, receipts are valid with the keys that the restored service publishes', async () => {
    const answer = await fetch(`${restored.url}/.well-known/jwks.json`)
    const keys = (await answer.json()) as Jwks
    for (const [, { signedReceipt, id }] of before.payments) {
      expect((await verifyReceipt({ receipt: signedReceipt, keys })).paymentId).toBe(id)
    }
  })

  test('a repeated request with the same Idempotency-Key gets from the restored service the same answer as before', async () => {
    const { agent } = restored
    for (const mail of before.sent.slice(0, 3)) {
      expect((await send(agent, mail)).body.messageId).toBe(mail.messageId)
    }
    const { resource } = around
    for (const { header, key, paymentId, txHash } of before.granted.slice(0, 3)) {
      const { body } = await redeem(agent, { resource, header, key })
      expect(body).toMatchObject({ ok: true, paymentId, txHash })
      const stranger = await redeem(agent, { resource, header, key: `${key}-other` })
      expect(stranger.body).toMatchObject({ ok: false, reason: 'duplicate_settlement' })
    }
  })
})

describe('the restored service finishes the work that was unfinished in the backup', () => {
  test('if a payment was unfinished in the backup, it settles once, by the transaction that is on the chain', async () => {
    for (const { id, nonce } of held.payments) {
      const payment = await waitFor('the payment', async () => {
        const { body } = await restored.agent.get(`/v0/payments/${id}`)
        return body.status === 'verified' ? null : body
      })
      expect([payment.status, payment.txHash]).toEqual(['settled', used.get(nonce)![0]!])
    }
  })

  test('jobs that workers of the first installation had locked run again within 40 seconds after the restore', async () => {
    await inDatabase(settings, restoredDir, async (pool) => {
      await waitFor('an empty queue', async () => {
        const { rows } = await pool.query('select from graphile_worker.jobs')
        return rows.length === 0
      })
    })
    for (const { id } of held.unsent) expect(around.mails().get(id)).toBeDefined()
    for (const { key } of held.pending) expect(around.webhooks().get(key)).toBeDefined()
  })
})

describe('work that was done after the backup is unknown to the restored service', () => {
  const lost = () => done.payments.filter(({ nonce }) => !held.nonces.includes(nonce))

  test('a payment that only the chain knows is refused as used after the restore, and the refusal names its transaction', async () => {
    const payments = lost()
    expect(payments.length).toBeGreaterThanOrEqual(ENOUGH)
    for (const { nonce, header, key } of payments.slice(0, 3)) {
      const { body } = await redeem(restored.agent, { resource: around.resource, header, key })
      expect(body).toMatchObject({
        ok: false,
        reason: 'invalid_exact_evm_nonce_already_used',
        detail: `the authorization was used before, by ${used.get(nonce)![0]}`,
      })
    }
  })

  test('mail and secrets that were stored after the backup are missing after the restore', async () => {
    const { agent } = restored
    const message = await agent.get(messagePath(done.received.at(-1)!))
    const secret = await agent.get(`/v0/vault/${done.secrets.at(-1)!.name}`)
    expect([message.status, secret.status]).toEqual([404, 404])
  })
})

describe('the restored service can do the same work as the first installation', () => {
  test('the restored service receives mail, sends mail, keeps secrets and settles payments', async () => {
    const { agent } = restored
    const messageId = '<after@example.com>'
    const mail = { from: 'ada@example.com', to: inbox, subject: 'After', text: 'x', messageId }
    await deliverMail(Number(settings.SMTP_PORT), mail)
    const { body: sent } = await send(agent, {
      key: 'after',
      body: { to: ['b@example.net'], subject: 'After', text: 'x' },
    })
    await agent.put('/v0/vault/after', { type: 'CUSTOM', data: { value: 'x' } })
    expect((await newGrants).map(({ ok }) => ok)).toEqual([true, true, true, true])
    await waitFor('the mail to be sent', () => isSent(agent, sent.messageId))
    await waitFor(
      'the message',
      async () => (await agent.get(messagePath(messageId))).status === 200,
    )
    expect((await agent.get('/v0/vault/after')).body.data).toEqual({ value: 'x' })
  })

  test('after the restore, the event stream continues without a gap after an event id that the backup contains', async () => {
    await waitFor('the event of the new mail', () => follower.known.some(isAfter))
    const numbers = follower.known.map(({ id }) => Number.parseInt(id, 10))
    const first = Number.parseInt(before.lastEventId, 10) + 1
    expect(numbers).toEqual(numbers.map((_, n) => first + n))
    expect(follower.known.map(({ type }) => type)).not.toContain('stream.gap')
  })

  test('if the backup lacks an event id, the event stream reports a gap, and then sends all events since the time of this id', async () => {
    await waitFor('the event of the new mail', () => follower.ahead.some(isAfter))
    const [gap, ...told] = follower.ahead
    expect(gap?.type).toBe('stream.gap')
    const since = Number(ends.lastEventId.split('-')[1])
    const news = follower.known.filter(({ createdAt }) => Date.parse(createdAt) > since)
    expect(news.length).toBeGreaterThan(0)
    expect(told.map(({ id }) => id)).toEqual(news.map(({ id }) => id).slice(0, told.length))
    expect(told.length).toBeGreaterThan(0)
  })

  const isAfter = ({ data }: PurserEvent) => data.subject === 'After'
})

describe('the restored service repeats no work that was finished when the backup was made', () => {
  test('no payment authorization was used twice on the chain, either before or after the restore', async () => {
    const uses = await around.usedOnChain()
    expect([...uses.values()].filter((hashes) => hashes.length > 1)).toEqual([])
    for (const [nonce, hashes] of used) expect(uses.get(nonce)).toEqual(hashes)
    // The restored service has settled four payments: the payment that was waiting for a block, and the three new
    // payments.
    expect(uses.size).toBe(used.size + 4)
  })

  test('the restored service did not repeat a webhook that the backup shows as delivered', () => {
    const now = around.webhooks()
    expect(before.delivered.length).toBeGreaterThan(ENOUGH)
    for (const key of before.delivered) expect([key, now.get(key)?.count]).toEqual([key, 1])
  })

  test('the restored service repeated only webhooks that the backup shows as pending, with the same key and body', async () => {
    const pending = held.pending.map(({ key }) => key)
    const cameAgain = (key: string) =>
      (around.webhooks().get(key)?.count ?? 0) > (webhooks.get(key)?.count ?? 0)
    await waitFor('the webhooks that were under way', () => pending.every(cameAgain))
    const madeAnew = new Set(announcements().flatMap(([, keys]) => [...keys]))
    const others = [...webhooks.keys()].filter(
      (key) => !madeAnew.has(key) && !pending.includes(key),
    )
    expect(others.filter(cameAgain)).toEqual([])
    const now = around.webhooks()
    for (const key of pending) expect([key, now.get(key)?.bodies]).toEqual([key, 1])
  })

  test('if the original installation and its restored copy both announce a payment by webhook, both webhooks have the same idempotency key', () => {
    const found = announcements()
    expect(found).toHaveLength(held.payments.length * 2)
    for (const [name, keys] of found) expect([name, keys.size]).toEqual([name, 1])
  })

  /** Returns the webhooks about payments that were unfinished in the backup. */
  const announcements = () => {
    const ids = held.payments.map(({ id }) => id)
    return [...around.announcements()].filter(([name]) => ids.some((id) => name.endsWith(id)))
  }

  test('after the restore, mail sent before the backup is not sent again, and unsent mail keeps its Message-ID and content', () => {
    const now = around.mails()
    expect(before.sent.length).toBeGreaterThan(0)
    for (const { messageId } of before.sent) {
      expect([messageId, now.get(messageId)?.count]).toEqual([messageId, 1])
    }
    expect([...now.values()].filter(({ contents }) => contents > 1)).toEqual([])
    const unsent = new Set(held.unsent.map(({ id }) => id))
    const again = [...mails].filter(([id, { count }]) => now.get(id)!.count > count)
    expect(again.map(([id]) => id).filter((id) => !unsent.has(id))).toEqual([])
  })
})
