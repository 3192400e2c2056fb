/**
 * Tests the sign-ins, signed offers and receipts of sellers, which the x402 reference library makes and reads.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { generateKeyPairSync, sign } from 'node:crypto'
import {
  createOfferEIP712,
  createOfferJWS,
  createReceiptEIP712,
  createReceiptJWS,
} from '@x402/extensions/offer-receipt'
import {
  parseSIWxHeader,
  validateSIWxMessage,
  verifySIWxSignature,
} from '@x402/extensions/sign-in-with-x'
import { privateKeyToAccount } from 'viem/accounts'
import { encodeHeader } from '../../../shared/till/x402v2.ts'
import {
  type Buyer,
  newBuyer,
  type PurchaseView,
  type Received,
  type Seller,
  startPurseTill,
  startSeller,
} from '../../support/purse/purseScene.ts'
import { SEPOLIA, type TestTill } from '../../support/till/till.ts'
import '../../support/long.ts'

const CAIP2 = 'eip155:84532'
let till: TestTill
let seller: Seller
let buyer: Buyer
beforeAll(async () => {
  till = await startPurseTill()
})
beforeEach(async () => {
  seller = startSeller(till)
  buyer = await newBuyer(till)
  await buyer.giveMandate({ hosts: [seller.host] })
})
afterAll(async () => {
  await till[Symbol.asyncDispose]()
})

function signInOf(changes: Record<string, unknown> = {}) {
  const { origin, host } = new URL(seller.url)
  return {
    'sign-in-with-x': {
      info: {
        domain: host,
        uri: `${origin}/weather`,
        version: '1',
        nonce: 'a1b2c3d4e5f6a7b8',
        issuedAt: new Date().toISOString(),
        statement: 'Sign in to read the weather.',
        resources: [seller.url],
        ...changes,
      },
      supportedChains: [{ chainId: CAIP2, type: 'eip191' }],
      schema: {},
    },
  }
}

/** Holds the sign-in headers that the seller received. */
let signIns: string[]
function offerSignIn(changes: Record<string, unknown> = {}): void {
  signIns = []
  seller.ask = async (request) => {
    const header = request.headers.get('sign-in-with-x')
    if (header === null) return seller.challenge([{}], { extensions: signInOf(changes) })
    signIns.push(header)
    const payload = parseSIWxHeader(header)
    const valid = await validateSIWxMessage(payload, new URL(new URL(seller.url).origin))
    const verified = await verifySIWxSignature(payload)
    return valid.isValid && verified.isValid
      ? Response.json({ welcome: payload.address })
      : Response.json({ valid, verified }, { status: 403 })
  }
}

test('a purse (wallet) signs in at a seller that it has paid before, and does not pay again', async () => {
  offerSignIn()
  const first = await buyer.pay(seller.url)
  expect([first.body.state, signIns]).toEqual(['answered', []])
  await buyer.settled(first.body.purchaseId, 'spent')
  const { body } = await buyer.pay(seller.url)
  expect(body).toMatchObject({ state: 'answered', status: 200, payment: null })
  expect(body).toMatchObject({ signedInAt: expect.any(String) })
  expect(JSON.parse(body.response!.body!).welcome.toLowerCase()).toBe(buyer.address)
  expect([signIns.length, seller.received.length]).toEqual([1, 1])
})

const BAD: [string, () => Record<string, unknown>][] = [
  ['for another host', () => ({ domain: 'bank.example' })],
  ['for another origin', () => ({ uri: 'https://bank.example/' })],
  ['that is an hour old', () => ({ issuedAt: new Date(Date.now() - 3_600_000).toISOString() })],
  ['that has expired', () => ({ expirationTime: new Date(Date.now() - 1_000).toISOString() })],
  ['with a line break in its statement', () => ({ statement: 'Hello\nURI: https://bank.example' })],
]
for (const [what, changes] of BAD) {
  test(`a purse (wallet) does not sign in with a sign-in challenge ${what}, and pays for the resource instead`, async () => {
    const first = await buyer.pay(seller.url)
    await buyer.settled(first.body.purchaseId, 'spent')
    offerSignIn(changes())
    const { body } = await buyer.pay(seller.url)
    expect(body).toMatchObject({ state: 'answered', status: 200, signedInAt: null })
    expect(body.payment).not.toBeNull()
    expect(signIns).toEqual([])
  })
}

test('a stopped purse (wallet) does not sign in at a seller', async () => {
  const first = await buyer.pay(seller.url)
  await buyer.settled(first.body.purchaseId, 'spent')
  offerSignIn()
  await till.service.platform.post(`/v0/platform/projects/${buyer.project.id}/purse/stop`, {})
  const { body } = await buyer.pay(seller.url)
  expect([body.state, body.reason, signIns]).toEqual(['refused', 'frozen', []])
})

const pair = generateKeyPairSync('ed25519')
const account = privateKeyToAccount(`0x${'5e'.repeat(32)}`)
const typed = (given: object) => account.signTypedData(given as never)
const jwsSigner = (kid: string) => ({
  kid,
  format: 'jws' as const,
  algorithm: 'EdDSA',
  sign: async (bytes: Uint8Array) =>
    Buffer.from(sign(null, bytes, pair.privateKey)).toString('base64url'),
})
const didOf = (host: string) => `did:web:${encodeURIComponent(host)}`

/** Makes a purchase at a seller that publishes its public key, and that signs its offers and receipts. */
async function proving({
  signer = 'host',
  payer,
  chains = [CAIP2],
}: {
  signer?: 'host' | 'payee' | 'stranger'
  payer?: string
  /** Lists the chains for which the seller signs an offer at the same price. */
  chains?: string[]
} = {}): Promise<Proved> {
  const stranger = startSeller(till)
  const owner = signer === 'stranger' ? stranger : seller
  const did = didOf(owner.host)
  owner.terms.payTo = account.address
  const document = {
    id: did,
    verificationMethod: [
      {
        id: `${did}#1`,
        type: 'JsonWebKey2020',
        controller: did,
        publicKeyJwk: pair.publicKey.export({ format: 'jwk' }),
      },
    ],
  }
  const offered = {
    scheme: 'exact',
    asset: SEPOLIA.usdcAddress,
    payTo: seller.terms.payTo,
    amount: seller.terms.amount,
  }
  const publish = (one: Seller, next: (request: Request) => Promise<Response>) => {
    one.ask = (request) =>
      new URL(request.url).pathname === '/.well-known/did.json'
        ? Response.json(document)
        : next(request)
  }
  if (owner !== seller) publish(owner, async () => new Response(null, { status: 404 }))
  publish(seller, async () => {
    const offers = await Promise.all(
      chains.map((network, acceptIndex) => {
        const given = { ...offered, acceptIndex, network }
        return signer === 'payee'
          ? createOfferEIP712(seller.url, given, typed)
          : createOfferJWS(seller.url, given, jwsSigner(`${did}#1`))
      }),
    )
    return seller.challenge(
      chains.map((network) => ({ network })),
      { extensions: { 'offer-receipt': { info: { offers } } } },
    )
  })
  if (owner !== seller) {
    const { ask } = seller
    seller.ask = (request) =>
      new URL(request.url).pathname === '/.well-known/did.json'
        ? new Response(null, { status: 404 })
        : ask(request)
  }
  seller.serve = async (payment: Received) => {
    const transaction = await seller.settle(payment)
    const about = {
      resourceUrl: seller.url,
      payer: payer ?? payment.payload.authorization.from,
      network: CAIP2,
      transaction,
    }
    const receipt =
      signer === 'payee'
        ? await createReceiptEIP712(about, typed)
        : await createReceiptJWS(about, jwsSigner(`${did}#1`))
    const said = {
      success: true,
      transaction,
      network: CAIP2,
      extensions: { 'offer-receipt': { info: { receipt } } },
    }
    return new Response('{}', { headers: { 'payment-response': encodeHeader(said) } })
  }
  const { body } = await buyer.pay(seller.url)
  await stranger[Symbol.asyncDispose]()
  return body as Proved
}

type Proved = PurchaseView & {
  payment: {
    sellerReceipt: string
    sellerReceiptVerdict: string
    sellerOffer: string
    sellerOfferVerdict: string
  }
}

test('a receipt and an offer are valid if the key of the seller’s host signed them', async () => {
  const { payment } = await proving()
  expect(payment).toMatchObject({ sellerReceiptVerdict: 'valid', sellerOfferVerdict: 'valid' })
  expect(payment.sellerReceipt.split('.').length).toBe(3)
})

test('a receipt and an offer are valid if the payee’s key signed them', async () => {
  seller.terms.payTo = account.address
  const { payment } = await proving({ signer: 'payee' })
  expect(payment).toMatchObject({ sellerReceiptVerdict: 'valid', sellerOfferVerdict: 'valid' })
})

test('of the offers that a seller signs for several chains, the offer for the chain of the payment is judged', async () => {
  for (const signer of ['host', 'payee'] as const) {
    seller.terms.payTo = account.address
    const { payment } = await proving({ signer, chains: ['eip155:8453', CAIP2] })
    expect([signer, payment]).toMatchObject([signer, { sellerOfferVerdict: 'valid' }])
  }
})

test('a valid signature gets the verdict other_signer if the signing key belongs neither to the host nor to the payee', async () => {
  const { payment } = await proving({ signer: 'stranger' })
  expect(payment).toMatchObject({
    sellerReceiptVerdict: 'other_signer',
    sellerOfferVerdict: 'other_signer',
  })
})

test('a seller’s receipt that names another payer gets the verdict mismatch', async () => {
  const { payment } = await proving({ payer: `0x${'11'.repeat(20)}` })
  expect(payment).toMatchObject({ sellerReceiptVerdict: 'mismatch', sellerOfferVerdict: 'valid' })
})

test('if a seller returns the receipt of an earlier purchase, the service gives this receipt the verdict mismatch', async () => {
  const first = await proving()
  const { serve } = seller
  seller.serve = async (payment, request) => {
    const answer = await serve(payment, request)
    const said = JSON.parse(atob(answer.headers.get('payment-response')!))
    said.extensions['offer-receipt'].info.receipt.signature = first.payment.sellerReceipt
    return new Response('{}', { headers: { 'payment-response': encodeHeader(said) } })
  }
  const { body } = await buyer.pay(seller.url)
  expect((body as Proved).payment).toMatchObject({
    ...{ sellerReceipt: first.payment.sellerReceipt, sellerReceiptVerdict: 'mismatch' },
    sellerOfferVerdict: 'valid',
  })
})

test('a malformed receipt counts as invalid, and a receipt whose key cannot be read counts as unchecked', async () => {
  const receipts: [string, string][] = [
    ['invalid', 'no.receipt.at-all'],
    [
      'unchecked',
      `${Buffer.from('{"alg":"EdDSA","kid":"did:key:z6Mk"}').toString('base64url')}.e30.AAAA`,
    ],
  ]
  for (const [verdict, signature] of receipts) {
    seller.serve = async (payment) => {
      const transaction = await seller.settle(payment)
      const extensions = { 'offer-receipt': { info: { receipt: { format: 'jws', signature } } } }
      const said = { success: true, transaction, extensions }
      return new Response('{}', { headers: { 'payment-response': encodeHeader(said) } })
    }
    const { body } = await buyer.pay(seller.url)
    expect((body as Proved).payment).toMatchObject({
      sellerReceiptVerdict: verdict,
      sellerOffer: null,
    })
  }
})
