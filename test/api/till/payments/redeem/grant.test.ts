import { expect, test } from 'bun:test'
import { grant } from '../../../../../api/till/payments/redeem/grant.ts'
import { createTillBatchers } from '../../../../../api/till/payments/tillBatchers.ts'
import { findPayment } from '../../../../../sql/till/payments/payments.ts'
import { NO_SETTLEMENT_LIMITS } from '../../../../../sql/till/settle/settlementBudgets.ts'
import { createTestDatabase } from '../../../../support/database/database.ts'
import { newProject, newSettled } from '../../../../support/till/tillRows.ts'

test('if another call has redeemed a payment, a call with a reused Idempotency-Key does not get the response for a different payment', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projectId = await newProject(pool)
  const services = { pool, ...createTillBatchers(pool, NO_SETTLEMENT_LIMITS as never) }
  const [first, second] = [
    await newSettled(pool, { projectId }),
    await newSettled(pool, { projectId }),
  ]
  const paymentOf = async ({ id }: { id: string }) => (await findPayment(pool, id)) as never
  const keyOf = (hash: string) => ({
    ...{ projectId, operation: 'redeem' as const, key: 'shared', hash: Buffer.from(hash) },
  })
  const granted = await grant(services, await paymentOf(first), {
    ...{ key: keyOf('first'), x402Version: 1 as const },
  })
  expect(granted).toMatchObject({ ok: true, paymentId: first.id })
  await grant(services, await paymentOf(second), { key: null, x402Version: 1 })
  const late = { key: keyOf('second'), x402Version: 1 as const }
  expect(await grant(services, await paymentOf(second), late)).toBeNull()
})
