import { expect, test } from 'bun:test'
import { some } from '../support/database/extent.ts'
import { MOMENTS } from '../support/database/postgresProxy.ts'
import { cutEveryRoundTrip, proxyThrough } from '../support/process/cuts.ts'
import { type Agent, messagePath, startTestService } from '../support/service.ts'
import { PRICE, pay, RESOURCE, startTestTill } from '../support/till/till.ts'
import '../support/long.ts'

/**
 * Repeats an API call with the same Idempotency-Key, as a client does, until the response is not 503.
 */
async function untilAnswered(
  agent: Agent,
  path: string,
  body: object,
  { key = crypto.randomUUID() }: { key?: string } = {},
) {
  for (let calls = 1; calls <= 10; calls++) {
    const answer = await agent.post(path, body, { 'idempotency-key': key })
    if (answer.status < 500) return answer
    expect(answer).toMatchObject({ status: 503, body: { error: 'unavailable' } })
  }
  throw new Error('every call was answered 503')
}

for (const moment of some(MOMENTS)) {
  test(`if the connection breaks ${moment} a database round trip, a send or reply with one Idempotency-Key still takes effect once`, async () => {
    const { proxy, through } = proxyThrough()
    await using service = await startTestService({
      smtp: false,
      workers: false,
      through: { api: through },
    })
    const agent = await service.newAgent()
    const { pool } = service.database
    const cuts = await cutEveryRoundTrip(await proxy, moment, async (label) => {
      const mail = { to: ['b@example.com'], subject: label, text: 'x' }
      const sent = await untilAnswered(agent, '/v0/messages/send', mail)
      expect(sent.status).toBe(201)
      const path = `${messagePath(sent.body.messageId)}/reply`
      const reply = await untilAnswered(agent, path, { text: label })
      expect(reply.status).toBe(201)
      expect(reply.body.threadId).toBe(sent.body.threadId)
      const { rows } = await pool.query(
        `select m.message_id, (select count(*)::int from graphile_worker.jobs j
           where j.key = 'send_mail:' || m.row) as jobs
         from messages m join threads t on t.row = m.thread_row where t.subject = $1 order by m.row`,
        [label],
      )
      expect(rows).toEqual([
        { message_id: sent.body.messageId, jobs: 1 },
        { message_id: reply.body.messageId, jobs: 1 },
      ])
    })
    expect(cuts).toBeGreaterThan(5)
  })

  test(`if the connection breaks ${moment} a database round trip, a payment is redeemed once, and the repeated call gets the same response`, async () => {
    const { proxy, through } = proxyThrough()
    await using till = await startTestTill({ parts: { through: { api: through } } })
    const seller = await till.newSeller()
    const cuts = await cutEveryRoundTrip(await proxy, moment, async () => {
      const { header: paymentHeader, authorization } = await pay()
      const key = crypto.randomUUID()
      const body = { paymentHeader, resource: RESOURCE, amount: PRICE }
      const first = await untilAnswered(seller, '/v0/payments/redeem', body, { key })
      const second = await untilAnswered(seller, '/v0/payments/redeem', body, { key })
      const other = await untilAnswered(seller, '/v0/payments/redeem', body)
      expect(first.body.ok).toBe(true)
      expect(second.body).toEqual(first.body)
      expect(other.body).toMatchObject({ ok: false, reason: 'duplicate_settlement' })
      const { rows } = await till.service.database.pool.query(
        'select state from payments where authorization_nonce = $1',
        [authorization.nonce],
      )
      expect(rows).toEqual([{ state: 'settled' }])
    })
    expect(cuts).toBeGreaterThan(5)
  })
}

test('if a database round trip of a PUT fails, the repeated PUT stores the credential correctly', async () => {
  const { proxy, through } = proxyThrough()
  await using service = await startTestService({
    smtp: false,
    workers: false,
    through: { api: through },
  })
  const agent = await service.newAgent()
  for (const moment of MOMENTS) {
    const cuts = await cutEveryRoundTrip(await proxy, moment, async (label) => {
      const path = `/v0/vault/${label}`
      const body = { type: 'API_KEY', data: { key: label } }
      for (let calls = 1; (await agent.put(path, body)).status !== 200; calls++) {
        expect(calls).toBeLessThan(10)
      }
      const { rows } = await service.database.pool.query(
        'select count(*)::int as n from credentials where name = $1',
        [label],
      )
      expect(rows[0].n).toBe(1)
    })
    expect(cuts).toBeGreaterThan(3)
  }
})
