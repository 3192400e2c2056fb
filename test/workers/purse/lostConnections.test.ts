/**
 * Breaks the connection to the database at every round trip of a purchase. Nothing may be paid twice, and the totals
 * must be exact.
 */
import { afterAll, beforeAll, expect } from 'bun:test'
import { some, testWhole } from '../../support/database/extent.ts'
import {
  MOMENTS,
  type PostgresProxy,
  startPostgresProxy,
} from '../../support/database/postgresProxy.ts'
import { RECOVERY_LIMIT_MS } from '../../support/process/alone.ts'
import { cutEveryRoundTrip } from '../../support/process/cuts.ts'
import { newBuyer, paidBy, type Seller, startSeller } from '../../support/purse/purseScene.ts'
import { startTestTill, type TestTill } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

let till: TestTill
let seller: Seller
const proxies: PostgresProxy[] = []
beforeAll(async () => {
  till = await startTestTill({
    env: { ALLOW_PRIVATE_NETWORKS: 'true' },
    parts: {
      pools: ['purse'],
      pool: { recoveryIntervalMs: 100 },
      through: {
        workers: async (url) => {
          const proxy = await startPostgresProxy(url)
          proxies.push(proxy)
          return proxy.url
        },
      },
    },
  })
  seller = startSeller(till)
})
afterAll(async () => {
  await seller[Symbol.asyncDispose]()
  await till[Symbol.asyncDispose]()
})

for (const moment of some(MOMENTS)) {
  for (const method of ['GET', 'POST'] as const) {
    testWhole(
      `a purchase by ${method} pays at most once, even if the database connection is cut ${moment} any round trip`,
      async () => {
        const buyer = await newBuyer(till)
        const mandateId = await buyer.giveMandate({ hosts: [seller.host] })
        const cuts = await cutEveryRoundTrip(proxies[0]!, moment, async (label) => {
          const before = await paidBy(till, buyer.address)
          const { body } = await buyer.pay(`${seller.url}?n=${label}`, { method, timeout: 0 })
          const ended = await waitFor(
            'the end',
            async () => {
              const found = await buyer.purchase(body.purchaseId)
              return found.state === 'pending' ? null : found
            },
            RECOVERY_LIMIT_MS,
          )
          const isPaid = ended.payment !== null
          // If a POST request was interrupted before its payment was signed, the purchase ends as unknown, because the
          // seller may have acted on the first request.
          if (isPaid || method === 'GET')
            expect(ended).toMatchObject({ state: 'answered', status: 200 })
          else expect(ended).toMatchObject({ state: 'unknown', reason: 'cut_off' })
          if (isPaid) await buyer.settled(body.purchaseId, 'spent')
          expect((await paidBy(till, buyer.address)) - before).toBe(isPaid ? 10_000n : 0n)
        })
        expect(cuts).toBeGreaterThan(5)
        const { reservedUsdc, spentUsdc, openUsdc } = await buyer.mandate(mandateId)
        expect([spentUsdc, openUsdc]).toEqual([reservedUsdc!, '0'])
        expect(Math.round(Number(spentUsdc) * 1e6)).toBe(Number(await paidBy(till, buyer.address)))
      },
    )
  }
}
