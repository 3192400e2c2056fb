/**
 * Kills workers at random moments of many purchases. No purchase may be paid twice, and no mandate (a limit on
 * payments) may be exceeded.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { RECOVERY_LIMIT_MS } from '../../support/process/alone.ts'
import { printed, type ServiceProcess, startProcess } from '../../support/process/process.ts'
import { newBuyer, paidBy, type Seller, startSeller } from '../../support/purse/purseScene.ts'
import { startTestTill, type TestTill } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

const PURCHASES = 60
const KILLS = 4
const LIMIT_ATOMIC = 500_000n

let till: TestTill
let seller: Seller
beforeAll(async () => {
  till = await startTestTill({ blockTimeS: 1, env: { ALLOW_PRIVATE_NETWORKS: 'true' } })
  seller = startSeller(till)
})
afterAll(async () => {
  await seller[Symbol.asyncDispose]()
  await till[Symbol.asyncDispose]()
})

async function startWorker(): Promise<ServiceProcess> {
  const { database, config } = till.service
  const env = {
    DATABASE_URL: database.url,
    DATA_DIR: config.dataDir,
    ALLOW_PRIVATE_NETWORKS: 'true',
  }
  const worker = startProcess('workers/main.ts', env, ['--pool', 'purse'])
  await printed(worker, /"msg":"ready"/)
  return worker
}

test(`after ${KILLS} kills −9 during ${PURCHASES} purchases, each payment authorization is used at most once and the spending limit is kept`, async () => {
  const buyer = await newBuyer(till)
  const mandateId = await buyer.giveMandate({ hosts: [seller.host], maxTotal: '0.5' })
  const bought = await Promise.all(
    Array.from({ length: PURCHASES }, () => buyer.pay(seller.url, { timeout: 0 })),
  )
  for (let kill = 0; kill < KILLS; kill++) {
    await using worker = await startWorker()
    const seen = seller.asked.length + seller.received.length
    // The worker is killed as soon as the seller has received a random number of additional requests.
    const further = 1 + Math.floor(Math.random() * 12)
    await waitFor(
      'some requests',
      () => seller.asked.length + seller.received.length >= seen + further,
    )
    worker.child.kill('SIGKILL')
    await worker.exited
  }
  await using _worker = await startWorker()
  const ended = await Promise.all(
    bought.map(({ body }) =>
      waitFor(
        'the end of a purchase',
        async () => {
          const found = await buyer.purchase(body.purchaseId)
          return found.state === 'pending' ? null : found
        },
        RECOVERY_LIMIT_MS * 2,
      ),
    ),
  )
  const signed = ended.filter(({ payment }) => payment !== null)
  expect(signed.length).toBe(50)
  for (const one of ended.filter(({ payment }) => payment === null)) {
    expect(one).toMatchObject({ state: 'refused', reason: 'mandate_exceeded' })
  }
  expect(new Set(seller.received.map(({ header }) => header)).size).toBe(50)
  for (const { purchaseId } of signed) await buyer.settled(purchaseId, 'spent')
  const paid = await paidBy(till, buyer.address)
  expect(paid).toBe(LIMIT_ATOMIC)
  expect(await buyer.mandate(mandateId)).toMatchObject({
    reservedUsdc: '0.5',
    spentUsdc: '0.5',
    openUsdc: '0',
    releasedUsdc: '0',
  })
})
