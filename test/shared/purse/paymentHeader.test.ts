/**
 * Tests the payment that a purse (a project's wallet) signs, in the payment header of x402 version 1 and of version 2.
 */
import { describe, expect, test } from 'bun:test'
import { recoverTypedDataAddress } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { chooseOffer, type Offer, readChallenge } from '../../../shared/purse/offers.ts'
import { type DigestSigner, signPayment } from '../../../shared/purse/paymentHeader.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'

const NETWORK = USDC_NETWORKS['base-sepolia']
const PAYEE = '0x036CbD53842c5426634e7929541eC2318f3dCF7f'
const account = privateKeyToAccount(`0x${'5e'.repeat(32)}`)
const signer: DigestSigner = { address: account.address, sign: (hash) => account.sign({ hash }) }
const URL_PAID = 'https://seller.example/weather'
const ENTRY = {
  scheme: 'exact',
  network: NETWORK.caip2,
  asset: NETWORK.usdcAddress,
  payTo: PAYEE,
  maxTimeoutSeconds: 60,
}
const TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
}

/** Returns the offer that a purse (wallet) accepts from a challenge. */
function offerOf(challenge: object): Offer {
  const read = readChallenge(null, JSON.stringify(challenge))!
  const url = URL_PAID
  const chosen = chooseOffer(read, { url, network: NETWORK, payer: account.address })
  if (!chosen.ok) throw new Error(chosen.reason)
  return chosen.offer
}
const ofV1 = () => offerOf({ x402Version: 1, accepts: [{ ...ENTRY, maxAmountRequired: '10000' }] })
const ofV2 = (more: object = {}) =>
  offerOf({ x402Version: 2, accepts: [{ ...ENTRY, amount: '10000', other: 1 }], ...more })

async function signed(offer: Offer) {
  const { header, nonce, validBefore } = await signPayment(offer, signer)
  const content = JSON.parse(Buffer.from(header.value, 'base64').toString('utf8'))
  return { name: header.name, content, nonce, validBefore }
}

describe('a purse (wallet) signs an authorization only for the terms of the seller’s offer', () => {
  test('a purse (wallet) signs the authorization of a payment for the exact price, payee and token', async () => {
    const { content, nonce, validBefore } = await signed(ofV1())
    const { signature, authorization } = content.payload
    expect(authorization).toEqual({
      from: account.address,
      to: expect.any(String),
      value: '10000',
      validAfter: '0',
      validBefore: String(validBefore),
      nonce,
    })
    expect(authorization.to.toLowerCase()).toBe(PAYEE.toLowerCase())
    const recovered = await recoverTypedDataAddress({
      domain: {
        name: NETWORK.eip712Name,
        version: NETWORK.eip712Version,
        chainId: NETWORK.chainId,
        verifyingContract: NETWORK.usdcAddress,
      },
      types: TYPES,
      primaryType: 'TransferWithAuthorization',
      message: authorization,
      signature,
    })
    expect(recovered).toBe(account.address)
  })

  test('the authorization of a payment expires after the number of seconds that the seller’s offer allows', async () => {
    const earliest = BigInt(Math.floor(Date.now() / 1000) + 60)
    const { validBefore } = await signed(ofV1())
    const latest = BigInt(Math.floor(Date.now() / 1000) + 60)
    expect(validBefore).toBeGreaterThanOrEqual(earliest)
    expect(validBefore).toBeLessThanOrEqual(latest)
  })

  test('the authorization of a payment has a nonce of 32 random bytes', async () => {
    const [one, other] = [await signed(ofV1()), await signed(ofV1())]
    expect(one.nonce).toMatch(/^0x[0-9a-f]{64}$/)
    expect(one.nonce).not.toBe(other.nonce)
  })
})

describe('a purse (wallet) writes the payment header in the x402 version of the seller’s challenge', () => {
  test('a payment header of x402 version 1 names the scheme and the chain', async () => {
    const { name, content } = await signed(ofV1())
    const { payload, ...rest } = content
    expect(name).toBe('X-PAYMENT')
    expect(rest).toEqual({ x402Version: 1, scheme: 'exact', network: 'base-sepolia' })
    expect(Object.keys(payload)).toEqual(['signature', 'authorization'])
  })

  test('a payment header of x402 version 2 repeats the offer, the resource and the extensions', async () => {
    const given = { resource: { url: URL_PAID, more: 1 }, extensions: { bazaar: {} } }
    const { name, content } = await signed(ofV2(given))
    const { payload, ...rest } = content
    expect(name).toBe('PAYMENT-SIGNATURE')
    expect(rest).toEqual({
      x402Version: 2,
      accepted: { ...ENTRY, amount: '10000', other: 1 },
      ...given,
    })
    expect(Object.keys(payload)).toEqual(['signature', 'authorization'])
  })

  test('a payment header of x402 version 2 contains a payment identifier if the seller requires one', async () => {
    const declared = (info: unknown) => ({ 'payment-identifier': { info, schema: {} }, other: 1 })
    const infoIn = async (info: unknown) => {
      const { content } = await signed(ofV2({ extensions: declared(info) }))
      const { info: sent } = content.extensions['payment-identifier']
      expect(content.extensions).toEqual(declared(sent))
      return sent
    }
    const [one, other] = [await infoIn({ required: true }), await infoIn({ required: true })]
    expect(one).toEqual({ required: true, id: expect.stringMatching(/^[A-Za-z0-9_-]{16,128}$/) })
    expect(other.id).not.toBe(one.id)
    for (const info of [{ required: false }, { required: 'true' }, {}, null, 'text']) {
      expect(await infoIn(info)).toEqual(info)
    }
    for (const extensions of [{ 'payment-identifier': null }, [], 'text', 7]) {
      expect((await signed(ofV2({ extensions }))).content.extensions).toEqual(extensions)
    }
  })

  test('a payment header of x402 version 2 has no resource or extensions if the challenge has none', async () => {
    const { content } = await signed(ofV2())
    expect(Object.keys(content)).toEqual(['x402Version', 'accepted', 'payload'])
  })
})
