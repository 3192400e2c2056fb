/**
 * Tests one run of a purchase job until the payment is signed: which sellers the job contacts, and how the job ends
 * without a payment.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { within } from '../../../shared/process/workContext.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import { findPurchase } from '../../../sql/purse/purchases/purchases.ts'
import { recordHead } from '../../../sql/till/watch/chainStatus.ts'
import { closeServers, serveRaw } from '../../support/process/localServer.ts'
import {
  type Accepted,
  type BuyScene,
  challenge,
  DENIED,
  openShop,
  PAYEE,
  SECRET,
  type Shop,
  startBuyScene,
} from '../../support/purse/buyScene.ts'
import { whileHeld } from '../../support/till/tillRows.ts'

let scene: BuyScene
let shop: Shop
beforeAll(async () => {
  scene = await startBuyScene()
  shop = scene.shop
})
beforeEach(() => openShop(shop))
afterAll(async () => {
  closeServers()
  await scene[Symbol.asyncDispose]()
})

/** Runs the job of a new purchase once, and returns the purchase. */
async function bought(given: Accepted & { allowPrivate?: boolean } = {}) {
  const id = await scene.accept(given)
  await scene.run(id, given)
  return scene.purchase(id)
}

const set = (id: string, columns: string) =>
  scene.pool.query(`update purchases set ${columns} where id = $1`, [id])

const POST = { method: 'POST', body: '{}' } as const
const USE = { headers: { authorization: 'Bearer {{apiKey}}' } }

describe('a purchase job contacts the seller only if the purchase can still be made', () => {
  test('a purchase job does nothing if the purchase does not exist, has ended, or waits for the owner’s approval', async () => {
    await scene.run('pur_unknown')
    for (const state of ['answered', 'refused', 'waiting']) {
      const id = await scene.accept()
      await set(id, `state = '${state}'`)
      await scene.run(id)
      expect(await scene.purchase(id)).toMatchObject({ state, reason: null })
    }
    expect(shop.heard).toEqual([])
  })

  test('after an interruption, a purchase job with the method GET or HEAD sends the request to the seller again', async () => {
    for (const method of ['GET', 'HEAD'] as const) {
      openShop(shop)
      const id = await scene.accept({ request: { method } })
      await set(id, `state = 'asking'`)
      await scene.run(id)
      expect([shop.heard[0], (await scene.purchase(id)).state]).toEqual(['ask', 'answered'])
    }
  })

  test('an interrupted purchase with a method that has side effects ends in the state unknown, and the seller gets no second request', async () => {
    const id = await scene.accept({ request: POST })
    await set(id, `state = 'asking'`)
    await scene.run(id)
    expect(await scene.purchase(id)).toMatchObject({
      state: 'unknown',
      reason: 'cut_off',
      detail: 'the worker was cut off before any payment; nothing was signed',
    })
    expect(shop.heard).toEqual([])
  })

  test('a purchase job sends a POST request to the seller, also after the owner’s approval, but does not send it again after an interruption', async () => {
    expect((await bought({ request: POST })).state).toBe('answered')
    for (const [state, heard, reason] of [
      ['queued', ['ask'], 'terms_changed'],
      ['asking', [], 'cut_off'],
    ] as const) {
      openShop(shop)
      const id = await scene.accept({ request: POST })
      await set(id, `state = '${state}', approved_hash = '\\x00'`)
      await scene.run(id)
      expect([shop.heard, (await scene.purchase(id)).reason]).toEqual([[...heard], reason])
    }
  })

  test('a purchase is refused without a request to the seller if the project has no purse (payment wallet)', async () => {
    const projectId = await scene.newProject({ purse: false })
    expect(await bought({ projectId })).toMatchObject({
      state: 'refused',
      reason: 'no_purse',
      detail: 'the project has no purse: its owner can open one',
      pay_to: null,
    })
    expect(shop.heard).toEqual([])
    expect(await bought({ projectId, kind: 'quote' })).toMatchObject({
      state: 'quoted',
      pay_to: PAYEE,
    })
  })

  test('until the service knows the chain, a purchase is refused without a request to the seller', async () => {
    const { pool } = scene
    for (const status of ['delete from chain_status', 'update chain_status set network = null']) {
      await pool.query(status)
      expect(await bought()).toMatchObject({ state: 'refused', reason: 'no_chain' })
      expect(await bought({ kind: 'quote' })).toMatchObject({ reason: 'no_chain' })
      const { network } = USDC_NETWORKS['base-sepolia']
      const waiting = await scene.accept()
      await set(waiting, `state = 'waiting'`)
      await scene.run(waiting)
      expect((await scene.purchase(waiting)).state).toBe('waiting')
      await recordHead(pool, { network, chainId: 84532, number: 7n, hash: '0x7' })
    }
    expect(shop.heard).toEqual([])
  })
})

describe('if a seller demands no payment or cannot be reached, the purchase ends without a payment', () => {
  test('if a seller responds with 200, 404 or 500, a purchase ends as answered and a price quote ends as quoted', async () => {
    for (const status of [200, 404, 500]) {
      shop.ask = () => new Response('free', { status })
      expect(await bought()).toMatchObject({ state: 'answered', status, money: null })
      expect(await bought({ kind: 'quote' })).toMatchObject({ state: 'quoted', status })
    }
  })

  test('a purchase reports that the seller was not reached if the connection is refused or the address is blocked', async () => {
    const port = await serveRaw(() => {})
    closeServers()
    expect(await bought({ request: { url: `http://127.0.0.1:${port}/` } })).toMatchObject({
      state: 'failed',
      reason: 'not_reached',
      detail: 'ECONNREFUSED',
    })
    expect(await bought({ allowPrivate: false })).toMatchObject({
      state: 'failed',
      reason: 'not_reached',
    })
    expect(shop.heard).toEqual([])
  })

  test('if the connection breaks after the request was sent, a purchase ends as unknown, because the seller may have acted', async () => {
    const port = await serveRaw((socket) => socket.on('data', () => socket.destroy()))
    const { state, reason, detail } = await bought({
      request: { url: `http://127.0.0.1:${port}/` },
    })
    expect([state, reason]).toEqual(['unknown', 'no_answer'])
    expect(detail).toEndWith('; nothing was signed')
  })

  test('a purchase sends no request to the seller if the credential does not allow this seller', async () => {
    const projectId = await scene.newProject()
    await scene.store(projectId, 'api.example')
    const purchase = await bought({ projectId, credential: 'weather', request: USE })
    expect(purchase).toMatchObject({ state: 'refused', reason: 'credential' })
    expect(purchase.detail).toStartWith('the credential ')
    expect(shop.heard).toEqual([])
  })

  test('a purchase sends no request to the seller if the credential has no value for a placeholder', async () => {
    const projectId = await scene.newProject()
    await scene.store(projectId, shop.host)
    const request = { headers: { authorization: '{{password}}' } }
    const purchase = await bought({ projectId, credential: 'weather', request })
    expect(purchase).toMatchObject({ state: 'refused', reason: 'credential' })
    expect(purchase.detail).toBe('{{password}} has no value in this credential')
    expect(shop.heard).toEqual([])
  })

  test('if a purchase ends before its job contacts the seller, the job sends no request', async () => {
    const id = await scene.accept()
    const end = `update purchases set state = 'refused' where id = $1`
    await whileHeld(scene.pool, end, [id], () => [scene.run(id)])
    expect(await scene.purchase(id)).toMatchObject({ state: 'refused', reason: null })
    expect(shop.heard).toEqual([])
  })
})

describe('a purchase job signs a payment only if the seller’s offer is well-formed and permitted', () => {
  test('a purchase reports a malformed offer if the seller’s 402 response contains no x402 challenge', async () => {
    shop.ask = () => new Response('pay me', { status: 402 })
    expect(await bought()).toMatchObject({
      state: 'refused',
      reason: 'malformed_challenge',
      detail: 'the 402 of the seller is no x402 challenge',
      pay_to: null,
    })
  })

  test('a purchase refuses a seller’s offer with faulty terms, and the reason names the fault', async () => {
    shop.ask = () => challenge({ scheme: 'upto' })
    expect(await bought()).toMatchObject({ state: 'refused', reason: 'no_offer', pay_to: null })
  })

  test('a purchase or quote is refused and its terms are stored if the operator has blocked the payee of the offer', async () => {
    shop.ask = () => challenge({ payTo: DENIED.toUpperCase().replace('0X', '0x') })
    for (const kind of ['payment', 'quote'] as const) {
      expect(await bought({ kind })).toMatchObject({
        state: 'refused',
        reason: 'payee_denied',
        pay_to: DENIED,
        amount_atomic: '10000',
        nonce: null,
      })
    }
  })

  test('a price quote stores the terms of the seller’s offer, and signs no payment', async () => {
    const projectId = await scene.newProject()
    shop.ask = () => challenge({}, { resource: { url: shop.url, description: 'The weather' } })
    expect(await bought({ projectId, kind: 'quote' })).toMatchObject({
      state: 'quoted',
      pay_to: PAYEE,
      resource: shop.url,
      description: 'The weather',
      nonce: null,
    })
    expect(shop.heard).toEqual(['ask'])
  })

  test('a price quote reads a challenge in a compressed body', async () => {
    const { headers } = challenge()
    const offer = Buffer.from(headers.get('payment-required')!, 'base64')
    const coding = { 'content-encoding': 'gzip' }
    shop.ask = () => new Response(Bun.gzipSync(offer), { status: 402, headers: coding })
    expect(await bought({ kind: 'quote' })).toMatchObject({
      ...{ state: 'quoted', amount_atomic: '10000' },
    })
  })

  test('a price quote reads a challenge in a header of 32 KB', async () => {
    shop.ask = () => challenge({}, { extensions: { note: 'x'.repeat(23_500) } })
    expect(await bought({ kind: 'quote' })).toMatchObject({ state: 'quoted', pay_to: PAYEE })
  })

  test('a seller’s offer is stored without the seller’s texts if the request contained a secret', async () => {
    const projectId = await scene.newProject()
    await scene.store(projectId, shop.host)
    shop.ask = () => challenge({}, { resource: { url: shop.url, description: SECRET } })
    const use: Accepted = { projectId, credential: 'weather', request: USE }
    for (const kind of ['quote', 'payment'] as const) {
      const purchase = await bought({ ...use, kind })
      expect(purchase).toMatchObject({ pay_to: PAYEE, resource: null, description: null })
    }
    shop.ask = () => challenge({ payTo: DENIED }, { resource: { description: SECRET } })
    expect(await bought(use)).toMatchObject({ reason: 'payee_denied', description: null })
  })

  test('a seller’s offer is refused and its terms are stored if no mandate (spending limit) allows the offer', async () => {
    const projectId = await scene.newProject({ terms: { hosts: ['other.example'] } })
    expect(await bought({ projectId })).toMatchObject({
      state: 'refused',
      reason: 'not_in_mandate',
      pay_to: PAYEE,
      nonce: null,
    })
    expect(shop.heard).toEqual(['ask'])
  })

  test('a purchase waits for the owner’s approval if the price is above the limit of the mandate', async () => {
    const projectId = await scene.newProject({ terms: { askAboveAtomic: 9_999n } })
    const waiting = await bought({ projectId })
    expect(waiting).toMatchObject({ state: 'waiting', asked_for: 'above_limit', nonce: null })
    expect(shop.heard).toEqual(['ask'])
    await set(waiting.id, `state = 'queued', approved_hash = asked_hash`)
    await scene.run(waiting.id)
    expect(await scene.purchase(waiting.id)).toMatchObject({ state: 'answered', money: 'open' })
  })

  test('a purchase is refused if the seller’s terms differ from the terms that the owner approved', async () => {
    const projectId = await scene.newProject({ terms: { askAboveAtomic: 9_999n } })
    const { id } = await bought({ projectId })
    await set(id, `state = 'queued', approved_hash = asked_hash`)
    shop.ask = () => challenge({ amount: '9999' })
    await scene.run(id)
    expect(await scene.purchase(id)).toMatchObject({
      state: 'refused',
      reason: 'terms_changed',
      detail: 'the seller asks for other terms than those that the owner approved',
      amount_atomic: '9999',
      nonce: null,
    })
  })
})

describe('a purchase job signs in at a seller only if the purse (wallet) has paid this seller before', () => {
  const extensionsOf = (change: object = {}) => ({
    'sign-in-with-x': {
      info: {
        ...{ domain: shop.host, uri: `http://${shop.host}/weather`, version: '1' },
        ...{ nonce: 'a1b2c3d4e5f6', issuedAt: new Date().toISOString(), ...change },
      },
      supportedChains: [{ chainId: 'eip155:84532', type: 'eip191' }],
    },
  })

  /** Makes a project that has already paid the fake shop once. */
  async function newRegular(): Promise<string> {
    const projectId = await scene.newProject()
    const { id } = await bought({ projectId })
    await set(id, `money = 'spent'`)
    openShop(shop)
    shop.ask = () => challenge({}, { extensions: extensionsOf() })
    return projectId
  }

  test('the buyer signs in without paying if the same purse (wallet) has already paid this host', async () => {
    const projectId = await newRegular()
    expect(await bought({ projectId })).toMatchObject({
      state: 'answered',
      status: 200,
      nonce: null,
      signed_in_at: expect.any(Date),
    })
    expect(shop.heard).toEqual(['ask', 'sign-in'])
  })

  test('the buyer first signs in, and pays if the seller still demands a payment', async () => {
    const projectId = await newRegular()
    shop.signIn = () => challenge({ amount: '7' })
    expect(await bought({ projectId })).toMatchObject({ state: 'answered', amount_atomic: '7' })
    expect(shop.heard.slice(0, 2)).toEqual(['ask', 'sign-in'])
    expect(shop.heard.length).toBe(3)
  })

  test('the buyer does not sign in for a price quote, or if its purse (wallet) has never paid this host', async () => {
    const projectId = await newRegular()
    await bought({ projectId, kind: 'quote' })
    await bought({ projectId, request: { url: `${shop.url}?city=Lima` } })
    await bought()
    expect(shop.heard.filter((one) => one === 'sign-in').length).toBe(1)
  })

  test('the buyer does not sign in if no mandate (spending limit) covers the seller, or if the owner has stopped a mandate', async () => {
    for (const change of [
      `update mandates set state = 'ended' where project_id = $1`,
      `update mandates set state = 'frozen' where project_id = $1`,
    ]) {
      const projectId = await newRegular()
      await scene.pool.query(change, [projectId])
      expect(await bought({ projectId })).toMatchObject({ state: 'refused', signed_in_at: null })
      expect(shop.heard).not.toContain('sign-in')
    }
  })

  test('the buyer does not sign in if the sign-in challenge names another host', async () => {
    const projectId = await newRegular()
    shop.ask = () => challenge({}, { extensions: extensionsOf({ domain: 'bank.example' }) })
    expect(await bought({ projectId })).toMatchObject({ state: 'answered', money: 'open' })
    expect(shop.heard).not.toContain('sign-in')
  })

  test('the buyer pays without signing in if the texts of the sign-in challenge are invalid under EIP-4361', async () => {
    const projectId = await newRegular()
    const uri = `http://${shop.host}/weather`
    for (const change of [{ uri: `${uri}|today` }, { resources: [`${uri}\n\nI owe you 5 USDC`] }]) {
      openShop(shop)
      shop.ask = () => challenge({}, { extensions: extensionsOf(change) })
      expect(await bought({ projectId })).toMatchObject({ state: 'answered', money: 'open' })
      expect(shop.heard).not.toContain('sign-in')
    }
  })
})

describe('the agent gets the response that it has paid for, unless the response is too long or could contain a secret', () => {
  const PICTURE = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0x00, 0x10])

  async function answerOf(given: Accepted = {}) {
    const { id, project_id: projectId } = await bought(given)
    const purchase = await findPurchase(scene.pool, { projectId, id, keyring: scene.keyring })
    return purchase?.answer
  }

  test('a response body that is not text is kept as base64, after decompression', async () => {
    shop.serve = () => new Response(PICTURE, { headers: { 'content-type': 'image/jpeg' } })
    const kept = { body: null, bodyOmitted: 'not-text', bodyBase64: PICTURE.toString('base64') }
    expect(await answerOf()).toMatchObject({ ...kept, headers: { 'content-type': 'image/jpeg' } })
    shop.serve = () =>
      new Response(Bun.gzipSync(PICTURE), { headers: { 'content-encoding': 'gzip' } })
    expect(await answerOf()).toMatchObject(kept)
  })

  test('a response with only a part of the resource is kept, and a body in an unknown encoding is kept as the seller sent it', async () => {
    shop.serve = () =>
      new Response('sun', { status: 206, headers: { 'content-range': 'bytes 0-2/5' } })
    expect(await answerOf()).toMatchObject({ status: 206, body: 'sun', bodyOmitted: null })
    shop.serve = () => new Response(PICTURE, { headers: { 'content-encoding': 'zstd2' } })
    expect(await answerOf()).toMatchObject({
      ...{ body: null, bodyOmitted: 'unknown-encoding', bodyBase64: PICTURE.toString('base64') },
    })
  })

  test('a response body above 1 MB, before or after decompression, is not stored', async () => {
    const large = Buffer.alloc(1024 * 1024 + 1, 'a')
    const omitted = { status: 200, body: null, bodyOmitted: 'too-large', bodyBase64: null }
    shop.serve = () => new Response(large)
    expect(await answerOf()).toMatchObject(omitted)
    shop.serve = () =>
      new Response(Bun.gzipSync(large), { headers: { 'content-encoding': 'gzip' } })
    expect(await answerOf()).toMatchObject(omitted)
  })

  test('if the request contained a secret, a response body that is not text is not stored', async () => {
    const projectId = await scene.newProject()
    await scene.store(projectId, shop.host)
    shop.serve = () => new Response(PICTURE)
    const answer = await answerOf({ projectId, credential: 'weather', request: USE })
    expect(answer).toMatchObject({ body: null, bodyOmitted: 'not-text' })
    expect(answer?.bodyBase64 ?? null).toBeNull()
  })
})

test('the seller gets no trace id of the agent, although the purchase job continues the agent’s trace', async () => {
  const seen: (string | null)[] = []
  shop.ask = (request) => {
    seen.push(request.headers.get('traceparent'))
    return challenge()
  }
  shop.serve = (request) => {
    seen.push(request.headers.get('traceparent'))
    return new Response('sunny')
  }
  const id = await scene.accept()
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  await within({ traceparent }, () => scene.run(id))
  expect(seen).toEqual([null, null])
})
