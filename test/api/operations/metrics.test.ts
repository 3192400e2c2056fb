import { afterAll, beforeAll, expect, test } from 'bun:test'
import { forgetListener, reportListener } from '../../../sql/operations/smtpListeners.ts'
import { recordHead } from '../../../sql/till/watch/chainStatus.ts'
import { startTestService, type TestService } from '../../support/service.ts'
import { newPayment, newTransaction, WALLET } from '../../support/till/tillRows.ts'

const TOKEN = 'a-token-of-some-length'
let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false, env: { METRICS_TOKEN: TOKEN } })
})
afterAll(() => service[Symbol.asyncDispose]())

const scrape = (authorization?: string) =>
  fetch(`${service.url}/metrics`, { headers: authorization ? { authorization } : {} })

/** Returns the samples of /metrics by metric name and labels. */
async function samples(): Promise<Map<string, number>> {
  const response = await scrape(`Bearer ${TOKEN}`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toStartWith('text/plain; version=0.0.4')
  const lines = (await response.text()).split('\n').filter((line) => /^\w/.test(line))
  return new Map(
    lines.map((line) => {
      const [, name = '', value] = /^(.+) (\S+)$/.exec(line)!
      return [name, Number(value)]
    }),
  )
}

test('/metrics shows the number of jobs for each task and state', async () => {
  const agent = await service.newAgent()
  await agent.post('/v0/messages/send', { to: ['a@example.com'], subject: 's', text: 't' })
  const found = await samples()
  expect(found.get('purser_jobs{task="send_mail",state="ready"}')).toBe(1)
  expect(found.get('purser_jobs{task="send_mail",state="running"}')).toBe(0)
  expect(found.get('purser_jobs_oldest_due_seconds{task="send_mail"}')).toBeGreaterThan(0)
  expect(found.get('purser_outbound_mails_pending')).toBe(1)
})

test('the metrics about the RPC node have no value until a payment worker has reported', async () => {
  const { pool } = service.database
  await pool.query('delete from chain_status')
  const names = ['purser_rpc_report_age_seconds', 'purser_chain_head']
  const values = async () => {
    const found = await samples()
    return names.map((name) => found.get(name) !== undefined)
  }
  expect(await values()).toEqual([false, false])
  const head = { network: 'base-sepolia', chainId: 84532, number: 7n, hash: '0x7' } as const
  await recordHead(pool, head)
  expect(await values()).toEqual([true, true])
  await pool.query('delete from chain_status')
  expect(await values()).toEqual([false, false])
})

test('after a change of the chain, the metrics count no waiting payments and no open transactions of the former chain, which nobody settles', async () => {
  const { pool } = service.database
  const head = { number: 7n, hash: '0x7' } as const
  await recordHead(pool, { ...head, network: 'base-sepolia', chainId: 84532 })
  const paymentId = await newPayment(pool)
  await newTransaction(pool, paymentId)
  const names = ['payments_verified', 'chain_transactions_open']
  const read = async () => {
    const found = await samples()
    const wallet = `{wallet="${WALLET.address}"}`
    return [
      ...names.map((name) => found.get(`purser_${name}`)),
      found.get(`purser_gas_wallet_open_transactions${wallet}`),
      found.get('purser_payments_oldest_verified_seconds') === 0,
    ]
  }
  expect(await read()).toEqual([1, 1, 1, false])
  await recordHead(pool, { ...head, network: 'base', chainId: 8453 })
  expect(await read()).toEqual([0, 0, undefined, true])
})

test('after an SMTP listener has reported, the metric purser_smtp_up tells whether it accepts mail', async () => {
  const { pool } = service.database
  const id = crypto.randomUUID()
  const up = async () => (await samples()).get('purser_smtp_up')
  expect(await up()).toBeUndefined()
  await reportListener(pool, { id, trouble: null })
  expect(await up()).toBe(1)
  await reportListener(pool, { id, trouble: 'the disk is full' })
  expect(await up()).toBe(0)
  await pool.query(
    `update smtp_listeners set trouble = null, reported_at = reported_at - interval '1 minute'`,
  )
  expect(await up()).toBe(0)
  await forgetListener(pool, id)
  expect(await up()).toBeUndefined()
})

test('if one SMTP listener’s disk is full, the metric still shows that another listener accepts mail', async () => {
  const { pool } = service.database
  const [full, other] = [crypto.randomUUID(), crypto.randomUUID()]
  await reportListener(pool, { id: full, trouble: 'the disk is full' })
  await reportListener(pool, { id: other, trouble: null })
  expect((await samples()).get('purser_smtp_up')).toBe(1)
  const { checks } = (await (await fetch(`${service.url}/readyz`)).json()) as {
    checks: Record<string, string>
  }
  expect(checks.smtp).toBe('the disk is full')
  await pool.query('delete from smtp_listeners')
})

test('the metrics record the time of HTTP requests by route, and never contain a requested path', async () => {
  const agent = await service.newAgent()
  await agent.get('/v0/messages/%3Cnobody%40example.com%3E')
  await agent.get('/v0/no/such/pathOfAStranger')
  const text = await (await scrape(`Bearer ${TOKEN}`)).text()
  expect(text).toContain(
    'purser_http_request_duration_seconds_count{method="GET",route="/v0/messages/:messageId",status="404"} 1',
  )
  expect(text).toContain('{method="other",route="none",status="404"} 1')
  expect(text).not.toContain('pathOfAStranger')
  expect(text).not.toContain('nobody')
})

test('a request for /metrics needs the metrics token if the operator has set a token', async () => {
  for (const authorization of [undefined, 'Bearer wrong', `Bearer ${TOKEN}x`, TOKEN]) {
    const response = await scrape(authorization)
    expect([authorization, response.status]).toEqual([authorization, 401])
    expect(await response.json()).toMatchObject({ error: 'unauthorized', status: 401 })
  }
})
