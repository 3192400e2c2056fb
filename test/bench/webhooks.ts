import { signWebhook } from '../../shared/events/webhookSignature.ts'
import { newEndpointId } from '../../shared/ids.ts'
import { transaction } from '../../sql/db.ts'
import { createDelivery } from '../../sql/events/deliveries.ts'
import { type Receiver, startReceiver, status } from '../support/events/receiver.ts'
import { printed, startProcess } from '../support/process/process.ts'
import { waitFor } from '../support/waitFor.ts'
import { compare, type Row } from './measure.ts'
import type { Setting } from './setting.ts'

const SECRET = 'whsec_bench_bench_bench'
const BODY = Buffer.from(JSON.stringify({ body: 'x'.repeat(1_000) }))
const DELIVERIES = 1_000
const LANES = 20
const PENDING = 200
const ENDPOINTS = 20

/**
 * Compares webhook deliveries with a bare loop that sends the same request and runs the same statements. Also measures
 * how late the retries of deliveries are.
 */
export async function webhookRows(setting: Setting): Promise<Row[]> {
  await using receiver = await startReceiver()
  const env = { ...setting.env, ALLOW_PRIVATE_NETWORKS: 'true' }
  await using worker = startProcess('workers/main.ts', { ...env, LOG_LEVEL: 'info' }, [
    '--pool',
    'webhooks',
  ])
  await printed(worker, /"msg":"ready"/)
  const endpoints: string[] = []
  for (let n = 0; n < ENDPOINTS; n++) endpoints.push(await addEndpoint(setting, receiver, n))
  const throughput = await compare({
    name: 'webhook deliveries',
    unit: 'deliveries/s',
    detail: `fetch, one select and one update with its attempt row, ${LANES} lanes, no queue`,
    ours: async () => {
      receiver.answer = status(200)
      await addDeliveries(setting, receiver, endpoints, DELIVERIES)
      return perSecondUntilNonePending(setting, DELIVERIES)
    },
    baseline: () => bareDeliveries(setting, receiver, endpoints),
  })
  return [throughput, ...(await latenessRows(setting, receiver, endpoints))]
}

async function addEndpoint({ pool, project }: Setting, receiver: Receiver, n: number) {
  const id = newEndpointId()
  await pool.query(
    `insert into seller_endpoints
       (id, project_id, url_pattern, match_key, price_atomic, network, webhook_url, webhook_secret)
     values ($1, $2, $3, $3, 1, 'base-sepolia', $4, $5)`,
    [id, project.id, `bench.example/${n}`, receiver.url, SECRET],
  )
  return id
}

/** Adds webhook deliveries in one database transaction, so that all of them become due at once. */
async function addDeliveries(
  { pool, project }: Setting,
  receiver: Receiver,
  endpoints: string[],
  count: number,
): Promise<void> {
  await transaction(pool, async (db) => {
    for (let n = 0; n < count; n++) {
      await createDelivery(db, {
        projectId: project.id,
        to: { endpointId: endpoints[n % endpoints.length]! },
        subjectId: null,
        event: 'payment.received',
        url: receiver.url,
        body: BODY,
      })
    }
  })
}

async function nonePending({ pool }: Setting): Promise<boolean> {
  const { rows } = await pool.query(
    `select exists (select from webhook_deliveries where status = 'pending') as pending`,
  )
  return !rows[0].pending
}

async function perSecondUntilNonePending(setting: Setting, count: number): Promise<number> {
  const startMs = performance.now()
  await waitFor('every delivery', () => nonePending(setting), 60_000)
  return (count * 1000) / (performance.now() - startMs)
}

/** Does the minimum work of a webhook delivery: it reads, signs, sends and records the delivery. */
async function bareDeliveries(
  { pool, project }: Setting,
  receiver: Receiver,
  endpoints: string[],
): Promise<number> {
  receiver.answer = status(200)
  const ids = Array.from({ length: DELIVERIES }, () => crypto.randomUUID())
  await pool.query(
    `insert into webhook_deliveries (id, project_id, endpoint_id, event, idempotency_key, url, body)
     select id, $2, $3, 'payment.received', id, $4, $5 from unnest($1::text[]) id`,
    [ids, project.id, endpoints[0], receiver.url, BODY],
  )
  const startMs = performance.now()
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
        const { rows } = await pool.query({
          name: 'bare-select',
          text: `select d.*, e.webhook_secret from webhook_deliveries d
                 join seller_endpoints e on e.id = d.endpoint_id where d.id = $1`,
          values: [id],
        })
        const { url, body, webhook_secret: secret } = rows[0]
        const response = await fetch(url, {
          method: 'POST',
          body,
          headers: { 'X-Service-Signature': signWebhook({ secret, body }) },
        })
        await response.arrayBuffer()
        await pool.query({
          name: 'bare-update',
          text: `with updated as (
                   update webhook_deliveries set status = 'delivered', attempt = 1, next_attempt_at = null where id = $1)
                 insert into webhook_attempts (delivery_id, n, started_at, ended_at, status_code)
                 values ($1, 1, now(), now(), $2)`,
          values: [id, response.status],
        })
      }
    }),
  )
  return (DELIVERIES * 1000) / (performance.now() - startMs)
}

/**
 * Measures at the receiver how late webhook delivery attempts arrive. An attempt is due after the retry delay, counted
 * from the receiver's last response.
 */
async function latenessRows(
  setting: Setting,
  receiver: Receiver,
  endpoints: string[],
): Promise<Row[]> {
  receiver.requests.length = 0
  receiver.answer = (request, response) => {
    response.writeHead(request.headers['x-service-delivery-attempt'] === '3' ? 200 : 503).end()
  }
  await addDeliveries(setting, receiver, endpoints, PENDING)
  await waitFor('every retry', () => nonePending(setting), 60_000)
  const byDelivery = Map.groupBy(
    receiver.requests,
    ({ headers }) => headers['x-service-idempotency-key'],
  )
  const lateMs: number[] = []
  for (const requests of byDelivery.values()) {
    for (const [n, delayMs] of [1_000, 4_000].entries()) {
      lateMs.push(requests[n + 1]!.atMs - requests[n]!.answeredMs - delayMs)
    }
  }
  lateMs.sort((a, b) => a - b)
  const at = (share: number) =>
    lateMs[Math.min(lateMs.length - 1, Math.floor(share * lateMs.length))]!
  const allowedMs = 150
  const detail = `the bar, at ${PENDING} pending retries that came due in a burst; first and worst: ${at(0).toFixed(1)} and ${at(1).toFixed(1)} ms`
  return [
    ['p50', at(0.5)],
    ['p99', at(0.99)],
  ].map(([name, ours]) => ({
    name: `webhook retry lateness, ${name}`,
    unit: 'ms',
    ours: ours as number,
    baseline: allowedMs,
    ratio: (ours as number) / allowedMs,
    detail,
  }))
}
