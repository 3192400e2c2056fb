/** Tests the download of the account book: its formats, its query parameters and its maximum length. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'
import { settledAt, spentAt } from '../../../support/till/bookRows.ts'
import { blocked, newHash, newPayment, settle } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'

const PATH = '/v0/payments/export'
const TIME = new Date('2026-01-05T10:00:00.000Z')
let service: TestService
let seller: Agent
let ids: string[]
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  seller = await service.newAgent()
  ids = []
  for (const ms of [0, 1, 2]) {
    const time = new Date(TIME.getTime() + ms)
    ids.push(await settledAt(service.database.pool, seller.project.id, time))
  }
})
afterAll(() => service[Symbol.asyncDispose]())

const download = (query: string, { key }: Pick<Agent, 'key'> = seller, method = 'GET') =>
  fetch(`${service.url}${PATH}?${query}`, { method, headers: { authorization: `Bearer ${key}` } })
async function entries(query = '', agent = seller) {
  const text = await (await download(`format=jsonl&${query}`, agent)).text()
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}
const idsOf = async (query = '') => (await entries(query)).map(({ id }) => id)

test('the account book is a file with CSV lines and column names, or with JSON lines', async () => {
  const csv = await download('')
  expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(csv.headers.get('content-disposition')).toBe('attachment; filename="payments.csv"')
  const lines = (await csv.text()).trimEnd().split('\r\n')
  expect(lines).toHaveLength(4)
  expect(lines[0]).toStartWith('kind,id,paymentId,settledAt,')
  expect(lines[1]).toStartWith(`payment,${ids[0]},${ids[0]},2026-01-05T10:00:00.000Z,`)
  const jsonl = await download('format=jsonl')
  expect(jsonl.headers.get('content-type')).toBe('application/jsonl')
  expect(jsonl.headers.get('content-disposition')).toBe('attachment; filename="payments.jsonl"')
  const [first] = await entries()
  expect(first).toMatchObject({
    ...{ kind: 'payment', id: ids[0], paymentId: ids[0], blockNumber: 7, feeWei: null },
    ...{ amountUsdc: '0.01', amountUsdcRaw: '10000', final: false, own: false },
  })
})

test('a HEAD request for the account book gets only the headers', async () => {
  const response = await download('', seller, 'HEAD')
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'text/csv; charset=utf-8',
  ])
  expect(await response.text()).toBe('')
})

test('a CSV account book without entries has only the line of column names', async () => {
  const other = await service.newAgent()
  expect((await (await download('', other)).text()).split('\r\n')).toHaveLength(2)
  expect(await (await download('format=jsonl', other)).text()).toBe('')
})

test('the query of the account book sets the period, and the entry after which the response begins', async () => {
  const [first, second] = await entries()
  const at = (ms: number) => encodeURIComponent(new Date(TIME.getTime() + ms).toISOString())
  expect(await idsOf(`from=${at(1)}`)).toEqual(ids.slice(1))
  expect(await idsOf(`to=${at(1)}`)).toEqual(ids.slice(0, 1))
  expect(await idsOf(`from=${at(1)}&to=${at(1)}`)).toEqual([])
  expect(await idsOf(`pageToken=${encodeURIComponent(first.cursor)}`)).toEqual(ids.slice(1))
  expect(await idsOf(`pageToken=${encodeURIComponent(second.cursor)}`)).toEqual(ids.slice(2))
  for (const [query, message] of [
    [`from=${at(1)}&to=${at(0)}`, 'to must not be earlier than from'],
    ['from=yesterday', 'from must be an ISO 8601 time with its zone, or a date'],
    ['pageToken=x', 'pageToken must be the cursor of an entry, unchanged'],
    ['format=xml', 'format must be one of "csv", "jsonl"'],
  ]) {
    const response = await download(query!)
    const { message: found } = (await response.json()) as { message: string }
    expect([query, response.status, found]).toEqual([query, 400, message])
  }
})

test('one response contains at most ten thousand entries of the account book, and its last cursor leads to the later entries', async () => {
  const large = await service.newAgent()
  await service.database.pool.query(
    `insert into payments (id, project_id, resource_url, network, chain_id, asset, payer, recipient, amount_atomic,
       valid_after, valid_before, authorization_nonce, signature, state, settled_at, tx_hash, signed_receipt)
     select $1 || n, $1, 'https://api.example/', 'base-sepolia', 84532, '0x1', '0x3', '0x2', 1000, 0, 1, $1 || n, '0x',
       'settled', $2::timestamptz + make_interval(secs => n), '0x', '{}'
     from generate_series(1, 10001) n`,
    [large.project.id, TIME],
  )
  const found = await entries('', large)
  expect(new Set(found.map(({ id }) => id)).size).toBe(10_000)
  const rest = await entries(`pageToken=${encodeURIComponent(found.at(-1)!.cursor)}`, large)
  expect(rest.map(({ id }) => id)).toEqual([`${large.project.id}10001`])
})

/**
 * Begins to settle a payment of an agent, and holds the transaction open before its commit. `commit` lets the
 * transaction commit.
 */
async function settleSlowly({ project }: Agent) {
  const { pool } = service.database
  const id = await newPayment(pool, { projectId: project.id })
  const holder = await pool.connect()
  await holder.query('begin')
  await holder.query('select from event_streams where project_id = $1 for update', [project.id])
  const settling = settle(pool, id, newHash())
  await blocked(pool, 1)
  const commit = async () => {
    await holder.query('commit')
    await settling
  }
  return {
    id,
    commit,
    async [Symbol.asyncDispose]() {
      await commit()
      holder.release()
    },
  }
}

test('a reader that continues with the last cursor misses no entry, even if an earlier entry is committed later', async () => {
  const agent = await service.newAgent()
  const first = await settledAt(service.database.pool, agent.project.id, TIME)
  await using slow = await settleSlowly(agent)
  const refund = { projectId: agent.project.id, kind: 'refund', time: new Date() } as const
  const later = await spentAt(service.database.pool, refund)
  const read = await entries('', agent)
  expect(read.map(({ id }) => id)).toEqual([first])
  await slow.commit()
  await waitFor('the later entries', async () => {
    const after = encodeURIComponent(read.at(-1).cursor)
    read.push(...(await entries(`pageToken=${after}`, agent)))
    return read.length >= 3
  })
  expect(read.map(({ id }) => id)).toEqual([first, slow.id, later])
})

test('a response of the account book about a past period waits until all entries of the period are committed', async () => {
  const agent = await service.newAgent()
  await settledAt(service.database.pool, agent.project.id, TIME)
  await using slow = await settleSlowly(agent)
  const to = encodeURIComponent(new Date().toISOString())
  const refused = await download(`to=${to}`, agent)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2'])
  expect(await refused.json()).toMatchObject({
    error: 'unavailable',
    message: 'The payments before `to` are still being recorded: try again in 2 seconds',
  })
  const reading = entries(`to=${to}`, agent)
  await slow.commit()
  expect((await reading).map(({ id }) => id)).toContain(slow.id)
})
