/** Tests how the header of a payment is rebuilt from its stored fields. */
import { describe, expect, test } from 'bun:test'
import { parseErc6492Signature } from 'viem'
import { paidHeader } from '../../../shared/till/paidHeader.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'

const NETWORK = USDC_NETWORKS['base-sepolia']
const URL_PAID = 'https://seller.example/weather'
const PAID: Parameters<typeof paidHeader>[0] = {
  x402Version: 1,
  network: 'base-sepolia',
  resourceUrl: URL_PAID,
  paymentIdentifier: null,
  asset: NETWORK.usdcAddress,
  payer: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  recipient: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
  amountAtomic: 10_000n,
  validAfter: 7n,
  validBefore: 1_900_000_000n,
  nonce: `0x${'ab'.repeat(32)}`,
  signature: `0x${'cd'.repeat(65)}`,
  deployment: null,
}

function written(changes: Partial<typeof PAID> = {}) {
  const { name, value } = paidHeader({ ...PAID, ...changes })
  return { name, content: JSON.parse(Buffer.from(value, 'base64').toString('utf8')) }
}

const PAYLOAD = {
  signature: PAID.signature,
  authorization: {
    from: PAID.payer,
    to: PAID.recipient,
    value: '10000',
    validAfter: '7',
    validBefore: '1900000000',
    nonce: PAID.nonce,
  },
}

describe('the rebuilt header of a stored payment has the same terms and signature as the original header', () => {
  test('a rebuilt payment header of x402 version 1 has the scheme, the chain and the payload of the stored payment', () => {
    expect(written({ paymentIdentifier: 'pay-1' })).toEqual({
      name: 'X-PAYMENT',
      content: { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: PAYLOAD },
    })
  })

  test('a rebuilt payment header of x402 version 2 has the resource, the accepted terms and the payload of the stored payment', () => {
    const { name, content } = written({ x402Version: 2 })
    const { accepted, ...rest } = content
    expect(name).toBe('PAYMENT-SIGNATURE')
    expect(rest).toEqual({ x402Version: 2, resource: { url: URL_PAID }, payload: PAYLOAD })
    expect(accepted).toMatchObject({
      scheme: 'exact',
      network: 'eip155:84532',
      amount: '10000',
      asset: NETWORK.usdcAddress,
      payTo: PAID.recipient,
    })
  })

  test('a rebuilt payment header of x402 version 2 contains the payer’s payment identifier', () => {
    const { content } = written({ x402Version: 2, paymentIdentifier: 'pay-1' })
    expect(content.extensions).toEqual({ 'payment-identifier': { info: { id: 'pay-1' } } })
  })

  test('the signature in a rebuilt payment header includes the call that deploys the payer’s wallet', () => {
    const deployment = { factory: PAID.recipient, factoryData: '0x1234' as const }
    const { content } = written({ deployment })
    expect(content.payload.authorization).toEqual(PAYLOAD.authorization)
    expect(parseErc6492Signature(content.payload.signature)).toEqual({
      address: PAID.recipient,
      data: '0x1234',
      signature: PAID.signature,
    })
  })
})
