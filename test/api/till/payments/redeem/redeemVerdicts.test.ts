/**
 * Compares the payments that the chain accepts with the payments that this service accepts. The service accepts no
 * payment that the chain rejects. It refuses a payment that the chain accepts only for the reasons in the table of this
 * test.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Address, encodeAbiParameters, type Hex } from 'viem'
import { DEVNET_ACCOUNTS } from '../../../../../shared/till/devnetAccounts.ts'
import type { UsdcNetwork } from '../../../../../shared/till/usdc.ts'
import type { Authorization } from '../../../../../shared/till/x402.ts'
import type { Agent } from '../../../../support/service.ts'
import { chainAccepts } from '../../../../support/till/devnetPayment.ts'
import { compact, highS, MAGIC } from '../../../../support/till/headers/payment.ts'
import { deployWallet } from '../../../../support/till/smartWallet.ts'
import {
  fund,
  headerOf,
  pay,
  payer,
  redeem,
  SEPOLIA,
  startTestTill,
  type TestTill,
} from '../../../../support/till/till.ts'

let till: TestTill
let seller: Agent
let wallet: Address

beforeAll(async () => {
  till = await startTestTill()
  seller = await till.newSeller()
  wallet = await deployWallet(till.client, payer.address)
  await fund(till.client, wallet, 1_000_000n)
})
afterAll(() => till[Symbol.asyncDispose]())

const nowS = () => BigInt(Math.floor(Date.now() / 1000))
const keep = (signature: Hex) => signature
const v0 = (signature: Hex): Hex =>
  `0x${signature.slice(2, -2)}${signature.endsWith('1b') ? '00' : '01'}`
const wrapped = (signature: Hex): Hex =>
  `0x${encodeAbiParameters(
    [{ type: 'address' }, { type: 'bytes' }, { type: 'bytes' }],
    [SEPOLIA.usdcAddress, '0x1234', signature],
  ).slice(2)}${MAGIC.slice(2)}`
const wrongName: UsdcNetwork = { ...SEPOLIA, eip712Name: 'USD Coin' }
const onBase: UsdcNetwork = { ...SEPOLIA, chainId: 8453 }

type Row = {
  name: string
  authorization?: () => Partial<Authorization>
  domain?: UsdcNetwork
  respell?: (signature: Hex) => Hex
  /** Lists the fields of the authorization that the test changes after the wallet has signed. */
  tamper?: Partial<Authorization>
  envelope?: Record<string, unknown>
  asked?: Record<string, unknown>
  /** Tells whether the chain accepts the authorization exactly as it is in the payment header. */
  chain: boolean
  /**
   * Holds the reason with which the service refuses the payment. Null means that the payment is accepted and paid.
   */
  reason: string | null
}

const signature = 'invalid_exact_evm_payload_signature'
const value = 'invalid_exact_evm_payload_authorization_value'
const before = 'invalid_exact_evm_payload_authorization_valid_before'
const after = 'invalid_exact_evm_payload_authorization_valid_after'
const recipient = 'invalid_exact_evm_payload_recipient_mismatch'

const ROWS: Row[] = [
  { name: 'a valid payment', chain: true, reason: null },
  {
    name: 'a payment of an ERC-1271 wallet',
    authorization: () => ({ from: wallet }),
    chain: true,
    reason: null,
  },
  { name: 'a signature with v 0 or 1', respell: v0, chain: false, reason: null },
  { name: 'a 64-byte signature (EIP-2098)', respell: compact, chain: false, reason: null },
  {
    name: 'a value above the price',
    authorization: () => ({ value: 10_001n }),
    chain: true,
    reason: value,
  },
  {
    name: 'a value below the price',
    authorization: () => ({ value: 9_999n }),
    chain: true,
    reason: value,
  },
  { name: 'a value of zero', authorization: () => ({ value: 0n }), chain: true, reason: value },
  {
    name: 'a wrong payTo address',
    authorization: () => ({ to: DEVNET_ACCOUNTS.gasWallet.address }),
    chain: true,
    reason: recipient,
  },
  {
    name: 'a payment to the payer',
    authorization: () => ({ to: payer.address }),
    chain: true,
    reason: recipient,
  },
  {
    name: 'an expired authorization',
    authorization: () => ({ validBefore: nowS() - 1n }),
    chain: false,
    reason: before,
  },
  {
    name: 'an authorization that expires in 5 s',
    authorization: () => ({ validBefore: nowS() + 5n }),
    chain: true,
    reason: before,
  },
  {
    name: 'an authorization that is not yet valid',
    authorization: () => ({ validAfter: nowS() + 60n }),
    chain: false,
    reason: after,
  },
  {
    name: 'a payer without funds',
    authorization: () => ({ value: 10n ** 17n }),
    asked: { amount: '100000000000' },
    chain: false,
    reason: 'insufficient_funds',
  },
  {
    name: 'a value changed after the signature',
    tamper: { value: 10_000n },
    authorization: () => ({ value: 1n }),
    chain: false,
    reason: signature,
  },
  { name: 'a wrong chain in the EIP-712 domain', domain: onBase, chain: false, reason: signature },
  {
    name: 'a wrong token name in the EIP-712 domain',
    domain: wrongName,
    chain: false,
    reason: signature,
  },
  {
    name: 'another network than that of the endpoint',
    envelope: { network: 'base' },
    chain: true,
    reason: 'invalid_network',
  },
  {
    name: 'a network in CAIP-2 form',
    envelope: { network: 'eip155:84532' },
    chain: true,
    reason: null,
  },
  {
    name: 'the payment scheme upto',
    envelope: { scheme: 'upto' },
    chain: true,
    reason: 'unsupported_scheme',
  },
  {
    name: 'x402 version 3',
    envelope: { x402Version: 3 },
    chain: true,
    reason: 'invalid_x402_version',
  },
  { name: 'a signature with a high s', respell: highS, chain: false, reason: signature },
  {
    name: 'a signature of zeros',
    respell: () => `0x${'00'.repeat(65)}`,
    chain: false,
    reason: signature,
  },
  {
    name: 'a signature that is too short',
    respell: () => '0x1234',
    chain: false,
    reason: signature,
  },
  {
    name: 'two signatures in one header',
    respell: (text) => `0x${text.slice(2).repeat(2)}`,
    chain: false,
    reason: 'invalid_exact_evm_payload_undeployed_smart_wallet',
  },
  {
    name: 'an ERC-6492 wallet of a factory that is not allowed',
    respell: wrapped,
    chain: false,
    reason: 'eip6492_factory_not_allowed',
  },
  {
    name: 'an ERC-1271 wallet with random bytes as the signature',
    authorization: () => ({ from: wallet }),
    respell: () => `0x${'ab'.repeat(100)}`,
    chain: false,
    reason: signature,
  },
]

describe('the redeem call accepts no payment that the chain rejects', () => {
  for (const row of ROWS) {
    test(`for the payment "${row.name}", the chain and the redeem call give the results that the table of this test expects`, async () => {
      const changes = row.authorization?.() ?? {}
      const made = await pay(changes, row.domain === undefined ? {} : { network: row.domain })
      const authorization = { ...made.authorization, ...row.tamper }
      const respelled = (row.respell ?? keep)(made.signature)
      expect(await chainAccepts(till.client, authorization, respelled)).toBe(row.chain)
      const { status, body } = await redeem(
        seller,
        headerOf(authorization, respelled, row.envelope),
        row.asked,
      )
      expect(status).toBe(200)
      expect(body.ok ? null : body.reason).toBe(row.reason)
      if (!body.ok) expect(body.requirement).toMatchObject({ x402Version: 1, error: row.reason })
    })
  }

  test('the redeem call refuses a used authorization as a duplicate, as the chain does', async () => {
    const { header, authorization, signature: signed } = await pay()
    expect((await redeem(seller, header)).body.ok).toBe(true)
    expect(await chainAccepts(till.client, authorization, signed)).toBe(false)
    expect((await redeem(seller, header)).body.reason).toBe('duplicate_settlement')
  })
})

test('a payment header with a random signature is not accepted, and does not use up its nonce', async () => {
  for (const from of [payer.address, wallet]) {
    const { authorization, header } = await pay({ from })
    const noise = headerOf(authorization, `0x${'ab'.repeat(100)}`)
    expect((await redeem(seller, noise)).body.ok).toBe(false)
    const [honest, thief] = await Promise.all([redeem(seller, header), redeem(seller, noise)])
    expect(honest.body.ok).toBe(true)
    expect(thief.body.ok).toBe(false)
    expect((await redeem(seller, noise)).body.ok).toBe(false)
  }
})

test('if one contract wallet’s payment header is sent in 50 redeem calls at once, only one call succeeds', async () => {
  const { header } = await pay({ from: wallet })
  const answers = await Promise.all(Array.from({ length: 50 }, () => redeem(seller, header)))
  expect(answers.filter(({ body }) => body.ok)).toHaveLength(1)
  expect(new Set(answers.flatMap(({ body }) => body.reason ?? []))).toEqual(
    new Set(['duplicate_settlement']),
  )
})

test('the redeem call accepts a payment as a JSON object instead of base64', async () => {
  const { header } = await pay()
  const object = JSON.parse(Buffer.from(header, 'base64').toString())
  expect((await redeem(seller, object)).body.ok).toBe(true)
})
