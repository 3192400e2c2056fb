/** Tests that no other spelling of a seller's URL evades the owner's limits on its price and its resource. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { changeMandate, giveMandate } from '../../../sql/purse/mandates.ts'
import { storeCredential } from '../../../sql/vault/credentials.ts'
import {
  type Accepted,
  type BuyScene,
  challenge,
  openShop,
  startBuyScene,
} from '../../support/purse/buyScene.ts'
import { ownerOf, TERMS } from '../../support/purse/purseRows.ts'

let scene: BuyScene
beforeAll(async () => {
  scene = await startBuyScene()
})
beforeEach(() => openShop(scene.shop))
afterAll(() => scene[Symbol.asyncDispose]())

/**
 * Buys at a path of the fake shop. @returns the state, and the reason why the owner must decide or why the purchase is
 * refused.
 */
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

test('if a price has risen, the payment waits for the owner’s approval, however the agent spells the path', async () => {
  const projectId = await scene.newProject()
  expect(await buy(projectId, '/weather')).toEqual(['answered', null])
  scene.shop.ask = () => challenge({ amount: '90000' })
  for (const path of ['/weather', ...SPELLINGS]) {
    expect([path, ...(await buy(projectId, path))]).toEqual([path, 'waiting', 'price_rose'])
  }
  expect(await buy(projectId, '/weather/')).toEqual(['answered', null])
})

/** Gives a project a mandate (spending limit) for one path of the fake shop. */
async function giveFor(projectId: string, path: string, isStopped: boolean): Promise<void> {
  const { pool, shop } = scene
  const resources = [`http://${shop.host}${path}`]
  const actor = ownerOf(projectId)
  const given = await giveMandate(pool, actor, { ...TERMS, hosts: [], resources })
  if (given === null || given === 'full') throw new Error('no mandate')
  if (!isStopped) return
  await changeMandate(pool, actor, given.id, {
    change: (present) => ({ ...present, validFrom: null, state: 'frozen' }),
  })
}

test.each(['/weather', '/%77eather', '/x/../weather'])(
  'a stopped mandate for the resource %s stops each spelling of it',
  async (path) => {
    const projectId = await scene.newProject()
    await giveFor(projectId, path, true)
    for (const spelling of ['/weather', ...SPELLINGS]) {
      expect([spelling, ...(await buy(projectId, spelling))]).toEqual([
        ...[spelling, 'refused', 'frozen'],
      ])
    }
    expect(await buy(projectId, '/other')).toEqual(['answered', null])
  },
)

test('a mandate for a resource also allows other spellings of its URL, but no other resource', async () => {
  const projectId = await scene.newProject({ terms: { hosts: ['nobody.example'] } })
  await giveFor(projectId, '/weather', false)
  for (const path of SPELLINGS) expect(await buy(projectId, path)).toEqual(['answered', null])
  expect(await buy(projectId, '/Weather')).toEqual(['refused', 'not_in_mandate'])
  expect(await buy(projectId, '/weather/x')).toEqual(['refused', 'not_in_mandate'])
})

test('a stopped mandate (spending limit) for a resource stops a request to this resource, even if a credential fills in a part of the path', async () => {
  const projectId = await scene.newProject()
  await giveFor(projectId, '/weather', true)
  await storeCredential(scene.pool, {
    ...{ actor: ownerOf(projectId), keyring: scene.keyring, name: 'path', isOwner: true },
    content: {
      ...{ type: 'CUSTOM', data: { part: 'ther' }, metadata: { begin: 'wea' }, expiresAt: null },
      ...{ allowedHosts: [scene.shop.host], placement: ['path:/wea'] },
    },
  })
  const credential = 'path'
  for (const path of ['/wea{{part}}', '/{{begin}}ther', '/{{ begin }}%74her']) {
    expect([path, ...(await buy(projectId, path, { credential }))]).toEqual([
      ...[path, 'refused', 'frozen'],
    ])
  }
})
