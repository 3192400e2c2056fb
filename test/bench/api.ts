import { freePort, printed, startProcess } from '../support/process/process.ts'
import { waitFor } from '../support/waitFor.ts'
import { compare, perSecond, type Row } from './measure.ts'
import type { Setting } from './setting.ts'

const LANES = 32
/** Sets the number of parallel connections that send mail in the benchmark. */
const SENDING_LANES = 64
const DURATION_MS = 2_000

/**
 * Compares an API request with a plain Elysia route that runs the same SQL, and a send call with its SQL statements
 * alone.
 */
export async function apiRows(setting: Setting): Promise<Row[]> {
  const [port, barePort] = [await freePort(), await freePort()]
  await using _api = startProcess('api/main.ts', { ...setting.env, PORT: String(port) })
  await using bare = startProcess('test/bench/bareServer.ts', {
    ...setting.env,
    PORT: String(barePort),
  })
  await waitFor('the API', async () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  await printed(bare, /ready/)

  const call = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${setting.key}`, 'content-type': 'application/json' },
    })
    const body = (await response.json()) as any
    if (!response.ok) throw new Error(JSON.stringify(body))
    return body
  }
  const callBare = async (path: string) =>
    (await fetch(`http://127.0.0.1:${barePort}${path}`)).json()
  const sendBody = JSON.stringify({
    to: ['a@example.com'],
    subject: 'Bench',
    text: 'x'.repeat(1_000),
  })
  const send = () => call('/v0/messages/send', { method: 'POST', body: sendBody })
  for (let n = 0; n < 200; n++) await send()
  const [{ messageId }] = (await call('/v0/messages')).messages
  const id = encodeURIComponent(messageId)
  const measure =
    (work: () => Promise<unknown>, lanes = LANES) =>
    () =>
      perSecond({ lanes, durationMs: DURATION_MS, work })

  const detail = `bare Elysia route with the same SQL, ${LANES} connections`
  return [
    await compare({
      name: 'list 20 messages',
      unit: 'requests/s',
      detail,
      ours: measure(() => call('/v0/messages?limit=20')),
      baseline: measure(() => callBare('/list')),
    }),
    await compare({
      name: 'get a message',
      unit: 'requests/s',
      detail,
      ours: measure(() => call(`/v0/messages/${id}`)),
      baseline: measure(() => callBare(`/get/${id}`)),
    }),
    await compare({
      name: 'send intents',
      unit: 'intents/s',
      detail: `one insert and one add_job in a transaction, ${SENDING_LANES} connections, no HTTP`,
      ours: measure(send, SENDING_LANES),
      baseline: measure(() => bareIntent(setting), SENDING_LANES),
    }),
  ]
}

/** Does the minimum work of a send call: it stores one row and one job, committed together. */
async function bareIntent({ pool }: Setting): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query({
      name: 'bench-insert',
      text: 'insert into bench_intents (body) values ($1)',
      values: ['x'.repeat(1_000)],
    })
    await client.query({
      name: 'bench-add-job',
      text: `select graphile_worker.add_job('bench', '{}'::json)`,
    })
    await client.query('commit')
  } finally {
    client.release()
  }
}
