import { afterAll, beforeAll, expect, test } from 'bun:test'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import { some } from '../../../support/database/extent.ts'
import {
  MOMENTS,
  type PostgresProxy,
  startPostgresProxy,
} from '../../../support/database/postgresProxy.ts'
import { RECOVERY_LIMIT_MS } from '../../../support/process/alone.ts'
import { cutEveryRoundTrip } from '../../../support/process/cuts.ts'
import type { Agent } from '../../../support/service.ts'
import { deployWallet } from '../../../support/till/smartWallet.ts'
import {
  fund,
  pay,
  payer,
  redeem,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/whole.ts'

let till: TestTill
let seller: Agent
let proxy: PostgresProxy
let wallet: `0x${string}`

beforeAll(async () => {
  till = await startTestTill({ worker: false })
  proxy = await startPostgresProxy(till.service.database.url)
  await till.startWorker({ databaseUrl: proxy.url, pool: { recoveryIntervalMs: 100 } })
  seller = await till.newSeller()
  wallet = await deployWallet(till.client, payer.address)
  await fund(till.client, wallet, 10_000_000n)
})
afterAll(async () => {
  await till[Symbol.asyncDispose]()
  await proxy[Symbol.asyncDispose]()
})

const sentByGasWallet = () =>
  till.client.getTransactionCount({ address: DEVNET_ACCOUNTS.gasWallet.address })

const untilNoJob = () =>
  waitFor(
    'no job to be left',
    async () => {
      const { rows } = await till.service.database.pool.query(
        `select id from graphile_worker.jobs where task_identifier in ('settle_payment', 'check_payment')`,
      )
      return rows.length === 0
    },
    RECOVERY_LIMIT_MS,
  )

for (const moment of some(MOMENTS)) {
  for (const [task, from] of [
    ['settle', () => payer.address],
    ['check', () => wallet],
  ] as const) {
    test(`a payment is made in only one transaction, even if the database connection is cut ${moment} any round trip of the job ${task}`, async () => {
      const cuts = await cutEveryRoundTrip(proxy, moment, async () => {
        const before = await sentByGasWallet()
        const { header } = await pay({ from: from() })
        const { body } = await redeem(seller, header)
        expect(body).toMatchObject({ ok: true })
        await untilNoJob()
        expect(await sentByGasWallet()).toBe(before + 1)
      })
      expect(cuts).toBeGreaterThan(3)
    })
  }
}
