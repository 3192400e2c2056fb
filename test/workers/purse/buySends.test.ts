/**
 * Tests how the job of a purchase sends a signed payment, when the job repeats the payment, and which outcome the job
 * records.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { privateKeyToAccount } from 'viem/accounts'
import { chooseOffer, readChallenge } from '../../../shared/purse/offers.ts'
import { termsHash } from '../../../shared/purse/termsHash.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import { encodeHeader } from '../../../shared/till/x402v2.ts'
import { findPurchase } from '../../../sql/purse/purchases/purchases.ts'
import { reserve } from '../../../sql/purse/purchases/reserve.ts'
import { closeServers, serveRaw } from '../../support/process/localServer.ts'
import {
  type Accepted,
  type BuyScene,
  challenge,
  openShop,
  SECRET,
  type Shop,
  startBuyScene,
} from '../../support/purse/buyScene.ts'
import { startMcpSeller } from '../../support/purse/mcpSeller.ts'

const TX = `0x${'aB'.repeat(32)}`
const CAIP2 = 'eip155:84532'
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

const set = (id: string, columns: string) =>
  scene.pool.query(`update purchases set ${columns} where id = $1`, [id])
const busy = () => new Response('busy', { status: 503 })
const settled = (body: object, name = 'payment-response', status = 200) =>
  new Response('sunny', { status, headers: { [name]: encodeHeader(body) } })
/** Returns the time the given number of milliseconds from now, as a Unix time in seconds, rounded up. */
const secondsIn = (ms: number) => Math.ceil((Date.now() + ms) / 1000)

async function bought(given: Accepted = {}) {
  const id = await scene.accept(given)
  await scene.run(id)
  return scene.purchase(id)
}

/** Makes a purchase with a signed payment that the fake shop has not yet accepted or refused. */
async function undecided(given: Accepted = {}): Promise<string> {
  const { serve } = shop
  shop.serve = busy
  const { id, state } = await bought(given)
  expect(state).toBe('signed')
  shop.serve = serve
  return id
}

describe('a purchase job sends a signed payment until the seller answers or the payment expires', () => {
  test('the buyer sends a signed payment again with the same bytes after 1, 2, 4 and then every 8 seconds', async () => {
    const id = await undecided()
    shop.serve = busy
    for (const pauseMs of [1_000, 2_000, 4_000, 8_000, 8_000]) {
      const leftMs = await scene.pauseMs(id)
      expect(leftMs).toBeWithin(pauseMs - 900, pauseMs + 1)
      await scene.run(id)
    }
    const payments = shop.heard.slice(1)
    expect([shop.heard[0], payments.length, new Set(payments).size]).toEqual(['ask', 6, 1])
    expect((await scene.purchase(id)).sends).toBe(6)
  })

  test('a purchase ends as answered if the seller responds to the signed payment with 200, 204, 307, 402 or 404', async () => {
    for (const status of [200, 204, 307, 402, 404]) {
      shop.serve = () => new Response(null, { status })
      expect(await bought()).toMatchObject({ state: 'answered', status, money: 'open' })
    }
  })

  test('the buyer does not send a signed payment again if the payment would expire at most 6 seconds after the next attempt', async () => {
    shop.serve = busy
    const id = await undecided()
    await set(id, `valid_before = ${secondsIn(2_000) + 6}`)
    await scene.run(id)
    expect(await scene.purchase(id)).toMatchObject({ state: 'answered', status: 503 })
    const later = await undecided()
    await set(later, `valid_before = ${secondsIn(2_000) + 9}`)
    await scene.run(later)
    expect(await scene.purchase(later)).toMatchObject({ state: 'signed', status: null })
  })

  test('after a broken connection the buyer sends the signed payment again, and the purchase ends as unknown when the payment expires', async () => {
    const head = challenge().headers.get('payment-required')
    const port = await serveRaw((socket) =>
      socket.on('data', (bytes) => {
        if (/^payment-signature:/im.test(String(bytes))) socket.destroy()
        else
          socket.end(`HTTP/1.1 402 Pay\r\npayment-required: ${head}\r\ncontent-length: 0\r\n\r\n`)
      }),
    )
    const projectId = await scene.newProject({ terms: { hosts: [`127.0.0.1:${port}`] } })
    const request = { url: `http://127.0.0.1:${port}/` }
    const id = await undecided({ projectId, request })
    await set(id, 'valid_before = 1')
    await scene.run(id)
    const { state, reason, detail, claimed_tx: tx } = await scene.purchase(id)
    expect([state, reason, tx]).toEqual(['unknown', 'no_answer', null])
    expect(detail).toEndWith('; the seller may have taken the payment')
  })

  test('after the owner has stopped a payment, the buyer does not send it again, unless the seller has taken the money', async () => {
    const cancelled = `cancel_signature = '0x12'`
    const id = await undecided()
    await set(id, cancelled)
    openShop(shop)
    await scene.run(id)
    expect(shop.heard).toEqual([])
    expect(await scene.purchase(id)).toMatchObject({
      ...{ state: 'unknown', reason: 'frozen', money: 'open', status: null },
    })
    const taken = await undecided()
    await set(taken, `${cancelled}, money = 'spent', tx_hash = '0x01', block_number = 1`)
    await scene.run(taken)
    expect(await scene.purchase(taken)).toMatchObject({ state: 'answered', status: 200 })
  })

  test('if the signed payment of a purchase is no longer valid, the purchase ends as expired, and the seller gets no request', async () => {
    const id = await undecided()
    await set(id, `money = 'released'`)
    openShop(shop)
    await scene.run(id)
    expect(await scene.purchase(id)).toMatchObject({
      state: 'unknown',
      reason: 'expired',
      detail: 'the seller gave no answer before the authorization ended; nothing was taken',
    })
    expect(shop.heard).toEqual([])
  })

  test('if the credential of a purchase with a signed payment is deleted, the purchase ends in the state unknown', async () => {
    const projectId = await scene.newProject()
    await scene.store(projectId, shop.host)
    const request = { headers: { authorization: 'Bearer {{apiKey}}' } }
    const id = await undecided({ projectId, credential: 'weather', request })
    await scene.pool.query('delete from credentials where project_id = $1', [projectId])
    await scene.run(id)
    expect(await scene.purchase(id)).toMatchObject({
      state: 'unknown',
      reason: 'credential',
      detail: 'the credential is gone or has expired; the payment was signed before',
    })
  })
})

describe('if another worker runs the job of a purchase at the same time, only one payment is signed', () => {
  /** Signs the payment of a purchase in place of another worker that has contacted the same seller. */
  async function signElsewhere(id: string): Promise<void> {
    const { project_id: projectId } = await scene.purchase(id)
    const network = USDC_NETWORKS['base-sepolia']
    const read = readChallenge(challenge().headers.get('payment-required'), '')!
    const chosen = chooseOffer(read, { url: shop.url, network, payer: `0x${'33'.repeat(20)}` })
    if (!chosen.ok) throw new Error(chosen.reason)
    const { offer } = chosen
    const wanted = [{ id, url: shop.url, offer, termsHash: termsHash(offer) }]
    const given = { projectId, wanted, dailyGas: null }
    const [reserved] = await reserve(scene.pool, scene.keyring, given)
    expect(reserved?.kind).toBe('signed')
  }

  test('a purchase job sends the payment that the other worker signed, and does not sign a second payment', async () => {
    const id = await scene.accept()
    shop.ask = async () => {
      await signElsewhere(id)
      return challenge()
    }
    await scene.run(id)
    expect(await scene.purchase(id)).toMatchObject({ state: 'answered', sends: 2 })
    expect(shop.heard.length).toBe(2)
  })

  test('a purchase job signs no payment if the purchase ends, or its project is deleted, before the seller responds', async () => {
    for (const end of [
      `update purchases set state = 'refused', reason = 'rejected', ended_at = now() where id = $1`,
      'update projects set deleted_at = now() where id = (select project_id from purchases where id = $1)',
    ]) {
      openShop(shop)
      const id = await scene.accept()
      shop.ask = async () => {
        await scene.pool.query(end, [id])
        return challenge()
      }
      await scene.run(id)
      expect([shop.heard, (await scene.purchase(id)).nonce]).toEqual([['ask'], null])
    }
  })
})

describe('a purchase job stores the settlement that a seller states', () => {
  test('the buyer reads the settlement from the headers of both x402 versions, and prefers the header PAYMENT-RESPONSE', async () => {
    for (const name of ['payment-response', 'x-payment-response']) {
      shop.serve = () => settled({ success: true, transaction: TX }, name)
      expect((await bought()).claimed_tx).toBe(TX.toLowerCase())
    }
    shop.serve = () => {
      const response = settled({ transaction: TX })
      response.headers.set(
        'x-payment-response',
        encodeHeader({ transaction: `0x${'cd'.repeat(32)}` }),
      )
      return response
    }
    expect((await bought()).claimed_tx).toBe(TX.toLowerCase())
    shop.serve = () => new Response('sunny')
    expect((await bought()).claimed_tx).toBeNull()
  })

  test('if the seller reports a pending settlement, the purchase job sends the same payment again', async () => {
    shop.serve = () => settled({ errorReason: 'settlement_pending' }, 'payment-response', 402)
    expect((await bought()).state).toBe('signed')
    shop.serve = () => settled({ errorReason: 'insufficient_funds' }, 'payment-response', 402)
    expect(await bought()).toMatchObject({ state: 'answered', status: 402 })
  })
})

describe('a purchase job stores a verdict about the signatures of the seller’s offer and receipt', () => {
  const payee = privateKeyToAccount(`0x${'5e'.repeat(32)}`)
  const typesOf = (names: string) =>
    names.split(' ').map((name) => ({
      name,
      type: ['version', 'validUntil', 'issuedAt'].includes(name) ? 'uint256' : 'string',
    }))
  const TYPES = {
    Offer: typesOf('version resourceUrl scheme network asset payTo amount validUntil'),
    Receipt: typesOf('version network resourceUrl payer issuedAt transaction'),
  }
  async function signed(primaryType: 'Offer' | 'Receipt', payload: Record<string, unknown>) {
    const name = `x402 ${primaryType.toLowerCase()}`
    const signature = await payee.signTypedData({
      ...{
        domain: { name, version: '1', chainId: 1 },
        types: { [primaryType]: TYPES[primaryType] },
      },
      ...{ primaryType, message: payload },
    })
    return { format: 'eip712', payload, signature }
  }

  /** Makes the fake shop sign its offer and its receipt, each for one resource. */
  function prove(
    resourceUrl: string,
    named: string | null = null,
    { transaction = '', aheadS = 0, validUntil = 0 } = {},
  ): void {
    shop.ask = async () => {
      const offer = await signed('Offer', {
        ...{ version: 1, resourceUrl, scheme: 'exact', network: CAIP2, payTo: payee.address },
        ...{ asset: USDC_NETWORKS['base-sepolia'].usdcAddress, amount: '10000', validUntil },
      })
      return challenge(
        { payTo: payee.address },
        {
          ...(named === null ? {} : { resource: { url: named } }),
          extensions: { 'offer-receipt': { info: { offers: [offer] } } },
        },
      )
    }
    shop.serve = async (_request, paid) => {
      const { payload } = JSON.parse(Buffer.from(paid!, 'base64').toString())
      const receipt = await signed('Receipt', {
        ...{ version: 1, network: CAIP2, resourceUrl, payer: payload.authorization.from },
        ...{ issuedAt: Math.floor(Date.now() / 1000) + aheadS, transaction },
      })
      return settled({ transaction: TX, extensions: { 'offer-receipt': { info: { receipt } } } })
    }
  }
  const verdicts = ({ receipt_verdict: receipt, offer_verdict: offer }: any) => [receipt, offer]

  test('a seller’s signed proof is valid only if it names the requested URL, the URL without its query, or the resource of the offer', async () => {
    const url = `${shop.url}?city=Lima`
    const named = `http://${shop.host}/named`
    for (const [resource, verdict] of [
      [url, 'valid'],
      [shop.url, 'valid'],
      [named, 'valid'],
      [`http://${shop.host}/other`, 'mismatch'],
    ] as const) {
      prove(resource, named)
      const purchase = await bought({ request: { url } })
      expect([resource, ...verdicts(purchase)]).toEqual([resource, verdict, verdict])
      expect(purchase.seller_receipt).toContain(resource)
    }
    prove(url)
    expect(verdicts(await bought({ request: { url } }))).toEqual(['valid', 'valid'])
  })

  test.each<[string, [string, string], Parameters<typeof prove>[2]]>([
    ['of this payment', ['valid', 'valid'], { transaction: TX }],
    ['of an earlier payment', ['mismatch', 'valid'], { aheadS: -3_600 }],
    ['of another transaction', ['mismatch', 'valid'], { transaction: `0x${'cd'.repeat(32)}` }],
    ['of an expired offer', ['valid', 'mismatch'], { validUntil: 1 }],
  ])(
    'the verdicts on proofs %s are %p, also if the payment was sent twice',
    async (_, expected, given) => {
      prove(shop.url, null, given)
      expect(verdicts(await bought())).toEqual(expected)
      const id = await undecided()
      await scene.run(id)
      expect(verdicts(await scene.purchase(id))).toEqual(expected)
    },
  )

  test('the signed proofs of a seller are checked even if the payment was sent more than once', async () => {
    prove(shop.url)
    const id = await undecided()
    await scene.run(id)
    expect(verdicts(await scene.purchase(id))).toEqual(['valid', 'valid'])
  })

  test('the signed proofs of a seller are not checked on a chain that the service no longer knows', async () => {
    prove(shop.url)
    const id = await undecided()
    await set(id, `network = 'goerli'`)
    await scene.run(id)
    const purchase = await scene.purchase(id)
    expect([purchase.state, ...verdicts(purchase)]).toEqual(['answered', null, null])
  })

  test('a purchase ends normally even if the texts of a seller contain a null character', async () => {
    const nul = (signature: string) => ({ format: 'jws', signature: `${signature}\0` })
    shop.ask = () =>
      challenge(
        {},
        {
          resource: { url: `${shop.url}\0`, description: 'The\0weather' },
          extensions: { 'offer-receipt': { info: { offers: [nul('a.b.c')] } } },
        },
      )
    shop.serve = () =>
      settled({
        transaction: TX,
        extensions: { 'offer-receipt': { info: { receipt: nul('d.e.f') } } },
      })
    expect(await bought()).toMatchObject({
      ...{ state: 'answered', money: 'open', claimed_tx: TX.toLowerCase() },
      ...{ resource: null, description: null, seller_offer: null, seller_receipt: null },
    })
  })

  test('a purchase ends normally even if the resource text of a seller contains a lone surrogate', async () => {
    shop.ask = () =>
      challenge({}, { resource: { url: 'mcp://tool/\ud800', description: 'The \udc00' } })
    expect(await bought()).toMatchObject({
      ...{ state: 'answered', money: 'open', resource: null, description: null },
    })
  })

  test('a purchase has no verdict about signed proofs if the seller has signed nothing', async () => {
    const purchase = await bought()
    expect([...verdicts(purchase), purchase.seller_receipt]).toEqual([null, null, null])
  })

  test('the signed proofs of a seller are neither stored nor checked if the request contained a secret', async () => {
    const projectId = await scene.newProject()
    await scene.store(projectId, shop.host)
    prove(shop.url)
    const request = { headers: { authorization: 'Bearer {{apiKey}}' } }
    const purchase = await bought({ projectId, credential: 'weather', request })
    expect(purchase).toMatchObject({ state: 'answered', claimed_tx: TX.toLowerCase() })
    expect([...verdicts(purchase), purchase.seller_receipt]).toEqual([null, null, null])
    expect(JSON.stringify(purchase)).not.toContain(SECRET)
  })
})

describe('a purchase job can pay for the tool call of an MCP server', () => {
  test('a purchase from an MCP tool pays for the tool call, and never signs in', async () => {
    await using paid = startMcpSeller()
    const projectId = await scene.newProject({ terms: { hosts: [paid.host] } })
    const accepts = [
      {
        ...{ scheme: 'exact', network: CAIP2, amount: '10000', maxTimeoutSeconds: 60 },
        ...{ asset: USDC_NETWORKS['base-sepolia'].usdcAddress, payTo: `0x${'11'.repeat(20)}` },
      },
    ]
    const signIn = {
      info: {
        ...{ domain: paid.host, uri: paid.url, version: '1', nonce: 'a1b2c3d4e5f6' },
        issuedAt: new Date().toISOString(),
      },
      supportedChains: [{ chainId: CAIP2, type: 'eip191' }],
    }
    paid.call = ({ _meta }) => ({
      result:
        _meta === undefined
          ? {
              isError: true,
              structuredContent: {
                ...{ x402Version: 2, accepts, extensions: { 'sign-in-with-x': signIn } },
              },
              content: [],
            }
          : {
              content: [{ type: 'text', text: 'sunny' }],
              _meta: { 'x402/payment-response': { success: true, transaction: TX } },
            },
    })
    const request = { method: 'POST', url: paid.url, body: '{"city":"Lima"}' } as const
    for (const _round of ['first', 'again']) {
      const purchase = await bought({ projectId, tool: 'weather', request })
      expect(purchase).toMatchObject({ state: 'answered', claimed_tx: TX.toLowerCase() })
      await set(purchase.id, `money = 'spent'`)
    }
    expect(paid.calls.map(({ _meta }) => Object.keys(_meta ?? {}))).toEqual([
      ...[[], ['x402/payment'], [], ['x402/payment']],
    ])
    expect(paid.calls[1]).toMatchObject({ name: 'weather', arguments: { city: 'Lima' } })
  })

  test('the buyer calls a paid MCP tool only once with the payment if its result is too large', async () => {
    await using paid = startMcpSeller()
    const projectId = await scene.newProject({ terms: { hosts: [paid.host] } })
    const accepts = [
      {
        ...{ scheme: 'exact', network: CAIP2, amount: '10000', maxTimeoutSeconds: 60 },
        ...{ asset: USDC_NETWORKS['base-sepolia'].usdcAddress, payTo: `0x${'11'.repeat(20)}` },
      },
    ]
    const large = { content: [{ type: 'text', text: 'x'.repeat(1024 * 1024) }] }
    paid.call = ({ _meta }) => ({
      result:
        _meta === undefined
          ? { isError: true, structuredContent: { x402Version: 2, accepts }, content: [] }
          : large,
    })
    const request = { method: 'POST', url: paid.url, body: '{}' } as const
    const purchase = await bought({ projectId, tool: 'weather', request })
    expect(purchase).toMatchObject({ state: 'answered', status: 200 })
    expect(paid.calls).toHaveLength(2)
    const { id } = purchase
    const found = await findPurchase(scene.pool, { projectId, id, keyring: scene.keyring })
    expect(found?.answer).toMatchObject({ body: null, bodyOmitted: 'too-large' })
  })
})
