/** Tests that a purchase ends unsigned if no worker has begun it for an hour, because its agent no longer waits. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { decidePayment } from '../../../sql/purse/purchases/askedPayments.ts'
import { type BuyScene, openShop, startBuyScene } from '../../support/purse/buyScene.ts'
import { ownerOf } from '../../support/purse/purseRows.ts'

let scene: BuyScene
beforeAll(async () => {
  scene = await startBuyScene()
})
beforeEach(() => openShop(scene.shop))
afterAll(() => scene[Symbol.asyncDispose]())

const LATE = {
  state: 'failed',
  reason: 'not_reached',
  detail: 'it waited too long for a worker; nothing was sent',
  money: null,
}

/** Makes a purchase look as if the API had accepted it some minutes ago. */
const age = (id: string, minutes: number) =>
  scene.pool.query(
    `update purchases set created_at = created_at - make_interval(mins => $2) where id = $1`,
    [id, minutes],
  )

test('a purchase or quote that waited longer than an hour for a worker ends as failed, and the seller gets no request', async () => {
  for (const kind of ['payment', 'quote'] as const) {
    const id = await scene.accept({ kind })
    await age(id, 61)
    await scene.run(id)
    expect(await scene.purchase(id)).toMatchObject(LATE)
  }
  expect(scene.shop.heard).toEqual([])
  const id = await scene.accept()
  await age(id, 59)
  await scene.run(id)
  expect(await scene.purchase(id)).toMatchObject({ state: 'answered', money: 'open' })
})

test('a purchase that was interrupted before its payment was signed ends without a signature after an hour', async () => {
  const id = await scene.accept()
  await scene.pool.query(`update purchases set state = 'asking' where id = $1`, [id])
  await age(id, 61)
  await scene.run(id)
  expect(await scene.purchase(id)).toMatchObject({
    state: 'unknown',
    reason: 'cut_off',
    money: null,
  })
  expect(scene.shop.heard).toEqual([])
})

test('if the owner has approved a purchase, its time limit of an hour begins with the approval', async () => {
  for (const [minutes, expected] of [
    [59, { state: 'answered', money: 'open' }],
    [61, LATE],
  ] as const) {
    const projectId = await scene.newProject({ terms: { askAboveAtomic: 9_999n } })
    const id = await scene.accept({ projectId })
    await scene.run(id)
    const { asked_hash: hash } = await scene.purchase(id)
    await age(id, 2 * 24 * 60)
    const { rows } = await scene.pool.query('select id from approvals where subject = $1', [id])
    const decision = { state: 'approved', hash } as const
    await decidePayment(scene.pool, ownerOf(projectId), { id: rows[0].id, decision })
    await scene.pool.query(
      'update approvals set decided_at = decided_at - make_interval(mins => $2) where subject = $1',
      [id, minutes],
    )
    await scene.run(id)
    expect(await scene.purchase(id)).toMatchObject(expected)
  }
})

test('a payment that is already signed goes on after an hour, until its authorization ends', async () => {
  scene.shop.serve = () => new Response('busy', { status: 503 })
  const id = await scene.accept()
  await scene.run(id)
  await age(id, 61)
  openShop(scene.shop)
  await scene.run(id)
  expect(await scene.purchase(id)).toMatchObject({ state: 'answered', money: 'open' })
})
