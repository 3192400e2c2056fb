/** Tests that the service requests each registered URL and checks whether it demands a payment. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { changeProject } from '../../../support/changeProject.ts'
import { type Receiver, startReceiver, status } from '../../../support/events/receiver.ts'
import { startWebhookService } from '../../../support/events/webhooks.ts'
import type { Agent, TestService } from '../../../support/service.ts'
import { CHALLENGE as v1 } from '../../../support/till/headers/challenge.ts'
import { encodeHeader, requirementV2 } from '../../../support/till/headers/x402v2.ts'
import { RESOURCE } from '../../../support/till/till.ts'
import { waitFor } from '../../../support/waitFor.ts'

const PATH = '/v0/sellers/endpoints'
let service: TestService
beforeAll(async () => {
  service = await startWebhookService()
})
afterAll(() => service[Symbol.asyncDispose]())

const v2 = encodeHeader({
  x402Version: 2,
  resource: { url: RESOURCE },
  accepts: [requirementV2({ network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', amount: '1' })],
})

/** Responds like a common seller of x402 version 2, which sends the challenge in the header and `{}` as the body. */
const header =
  (value: string): Receiver['answer'] =>
  (_request, response) => {
    response.writeHead(402, { 'payment-required': value }).end('{}')
  }

/** Responds like a seller that accepts only POST requests. */
const postOnly =
  (code: number): Receiver['answer'] =>
  (request, response) => {
    if (request.method === 'POST') response.writeHead(402).end(v1)
    else response.writeHead(code).end()
  }

async function verify(owner: Agent, urlPattern: string) {
  const { body } = await owner.put(PATH, { urlPattern, priceUsdc: '0.01' })
  return waitFor('a verdict', async () => {
    const { body: shown } = await owner.get(`${PATH}/${body.endpointId}`)
    return shown.verification.status === 'pending' ? null : shown.verification
  })
}

const rows: [string, string, Receiver['answer'] | null, string | RegExp, string[]][] = [
  ['version 1 in the body', 'verified', status(402, v1), 'answered 402 with a challenge', ['GET']],
  ['F5: version 2 in the header', 'verified', header(v2), /with a challenge/, ['GET']],
  ['POST only, by 405', 'verified', postOnly(405), /with a challenge/, ['GET', 'POST']],
  ['POST only, by 404', 'verified', postOnly(404), /with a challenge/, ['GET', 'POST']],
  ['a header of garbage', 'failed', header('%%%'), /without a challenge/, ['GET']],
  [
    'a challenge without a price',
    'failed',
    status(402, '{"x402Version":1,"accepts":[{"scheme":"exact"}]}'),
    /without a challenge/,
    ['GET'],
  ],
  ['a body of text', 'failed', status(402, 'pay!'), /without a challenge/, ['GET']],
  [
    'no requirement',
    'failed',
    status(402, '{"x402Version":1,"accepts":[]}'),
    /without a challenge/,
    ['GET'],
  ],
  ['null', 'failed', status(402, 'null'), /without a challenge/, ['GET']],
  ['200', 'failed', status(200, v1), 'answered 200, expected 402', ['GET']],
  ['302', 'failed', status(302, ''), 'answered 302, expected 402', ['GET']],
  ['404 for both', 'failed', status(404, ''), 'answered 404, expected 402', ['GET', 'POST']],
  ['nobody', 'unreachable', null, /ECONNREFUSED/, []],
]

for (const [name, verdict, answer, detail, asked] of rows) {
  test(`the check of an endpoint results in the verdict ${verdict}: ${name}`, async () => {
    await using receiver = await startReceiver(answer ?? status(500))
    const port = answer === null ? 1 : receiver.port
    const owner = await service.newAgent()
    expect(await verify(owner, `http://127.0.0.1:${port}/p`)).toEqual({
      status: verdict,
      checkedAt: expect.stringMatching(/Z$/),
      detail: typeof detail === 'string' ? detail : expect.stringMatching(detail),
    })
    expect(receiver.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(
      asked.map((method) => `${method} /p`),
    )
  })
}

test('if the 402 response of an endpoint names only a foreign payTo address, the service checks the endpoint again within one hour', async () => {
  const { pool } = service.database
  await using receiver = await startReceiver(status(402, v1))
  const [{ payTo: named }] = JSON.parse(v1).accepts
  const nextCheckMs = async (payTo: string | null) => {
    const owner = await service.newAgent()
    if (payTo !== null) await changeProject(pool, owner.project.id, { payTo })
    await verify(owner, `http://127.0.0.1:${receiver.port}/p`)
    return waitFor('the end of the check', async () => {
      const { rows } = await pool.query(
        `select extract(epoch from j.run_at - now()) * 1000 as ms
         from seller_endpoints e left join graphile_worker.jobs j
           on j.key = 'verify_endpoint:' || e.id and j.run_at > now() + interval '1 minute'
         where e.project_id = $1 and not exists (
           select from graphile_worker.jobs r
           where r.key = 'verify_endpoint:' || e.id and (r.locked_at is not null or r.run_at <= now()))`,
        [owner.project.id],
      )
      return rows[0] === undefined ? null : { ms: rows[0].ms }
    })
  }
  expect([
    await nextCheckMs(named.toUpperCase().replace('0X', '0x')),
    await nextCheckMs(null),
  ]).toEqual([{ ms: null }, { ms: null }])
  const { ms } = await nextCheckMs(`0x${'12'.repeat(20)}`)
  expect(Number(ms)).toBeWithin(50 * 60_000, 60 * 60_000 + 1)
})
