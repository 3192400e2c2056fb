/** Tests that no other spelling of a seller's URL evades the owner's limits on its price. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import {
  type Accepted,
  type BuyScene,
  challenge,
  openShop,
  startBuyScene,
} from '../../support/purse/buyScene.ts'

let scene: BuyScene
beforeAll(async () => {
  scene = await startBuyScene()
})
beforeEach(() => openShop(scene.shop))
afterAll(() => scene[Symbol.asyncDispose]())

/** Buys at a path of the shop. @returns the state, and the reason for a question or a refusal. */
async function buy(projectId: string, path: string, given: Accepted = {}) {
  const url = `http://${scene.shop.host}${path}`
  const id = await scene.accept({ ...given, projectId, request: { ...given.request, url } })
  await scene.run(id)
  const { state, reason, asked_for: asked } = await scene.purchase(id)
  return [state, asked ?? reason]
}

const SPELLINGS = [
  '/./weather',
  '/x/../weather',
  '/%2e/weather',
  '/x/%2E%2e/weather',
  '/.\\weather',
  '/%77eather',
  '/%77%65%61ther?city=Berlin',
]

test('a risen price waits for the owner, however the agent spells the path', async () => {
  const projectId = await scene.newProject()
  expect(await buy(projectId, '/weather')).toEqual(['answered', null])
  scene.shop.ask = () => challenge({ amount: '90000' })
  for (const path of ['/weather', ...SPELLINGS]) {
    expect([path, ...(await buy(projectId, path))]).toEqual([path, 'waiting', 'price_rose'])
  }
  expect(await buy(projectId, '/weather/')).toEqual(['answered', null])
})
