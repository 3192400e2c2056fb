/** Tests that a purchase ends even if its job was lost. */
import { expect, test } from 'bun:test'
import { requeueLostPurchases } from '../../../sql/purse/purchases/purchaseJobs.ts'
import { newBuyer, startPurseTill, startSeller } from '../../support/purse/purseScene.ts'

test('if the job of a purchase is lost, the purchase gets a new job after a minute, unless it waits for its owner', async () => {
  await using till = await startPurseTill({ parts: { pools: [] } })
  await using seller = startSeller(till)
  const buyer = await newBuyer(till)
  await buyer.giveMandate({ hosts: [seller.host] })
  const lost = await buyer.pay(seller.url, { timeout: 0 })
  const waiting = await buyer.pay(seller.url, { timeout: 0 })
  const { pool } = till.service.database
  await pool.query(`update purchases set state = 'waiting' where id = $1`, [
    waiting.body.purchaseId,
  ])
  await pool.query(`delete from graphile_worker._private_jobs where key like 'buy:%'`)
  expect(await requeueLostPurchases(pool)).toBe(0)
  await pool.query(`update purchases set created_at = created_at - interval '2 minutes'`)
  expect(await requeueLostPurchases(pool)).toBe(1)
  expect(await requeueLostPurchases(pool)).toBe(0)
  const { rows } = await pool.query(`select key from graphile_worker.jobs where key like 'buy:%'`)
  expect(rows).toEqual([{ key: `buy:${lost.body.purchaseId}` }])
})
