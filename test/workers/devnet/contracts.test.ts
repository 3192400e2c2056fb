import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Address, encodeFunctionData, type Hex, parseEventLogs } from 'viem'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import type { UsdcNetwork } from '../../../shared/till/usdc.ts'
import type { Authorization } from '../../../shared/till/x402.ts'
import { type DevnetClient, devnetClient } from '../../../workers/devnet/contracts.ts'
import { type Devnet, startDevnet } from '../../../workers/devnet/devnet.ts'
import { MULTICALL3_ADDRESS } from '../../../workers/till/wallets/walletDeployment.ts'
import {
  ABI,
  authorize,
  chainAccepts,
  gasWallet,
  judge,
  payer,
  payTo,
  SEPOLIA,
  settle,
  signed,
  usdc,
} from '../../support/till/devnetPayment.ts'
import { deployWallet } from '../../support/till/smartWallet.ts'

const directory = mkdtempSync(join(tmpdir(), 'devnet-'))
let devnet: Devnet
let client: DevnetClient

beforeAll(async () => {
  const log = { info() {}, warn() {} }
  devnet = await startDevnet({ port: 0, stateFile: join(directory, 'state'), log })
  client = devnetClient(devnet.rpcUrl)
})

afterAll(async () => {
  await devnet.stop()
  rmSync(directory, { recursive: true })
})

async function fund(client: DevnetClient, to: Address): Promise<void> {
  const data = encodeFunctionData({ abi: ABI, functionName: 'transfer', args: [to, 1_000_000n] })
  const account = payer.address
  const hash = await client.sendTransaction({ account, chain: null, to: usdc.address, data })
  await client.waitForTransactionReceipt({ hash })
}

describe('a fresh devnet (local test chain) has the contracts and accounts that payments need, like Base Sepolia', () => {
  test('a fresh devnet (local test chain) has the chain id, USDC contract, EIP-712 domain and Multicall3 contract of Base Sepolia', async () => {
    expect([devnet.chainId, await client.getChainId()]).toEqual([84532, 84532])
    const read = (functionName: 'name' | 'symbol' | 'version' | 'decimals' | 'DOMAIN_SEPARATOR') =>
      client.readContract({ ...usdc, functionName })
    expect(await read('name')).toBe('USDC')
    expect(await read('symbol')).toBe('USDC')
    expect(await read('version')).toBe('2')
    expect(await read('decimals')).toBe(6)
    expect(await read('DOMAIN_SEPARATOR')).toBe(
      '0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818',
    )
    const balances = await client.multicall({
      multicallAddress: MULTICALL3_ADDRESS,
      contracts: [payer.address, payTo].map((account) => ({
        ...usdc,
        functionName: 'balanceOf' as const,
        args: [account] as const,
      })),
      allowFailure: false,
    })
    expect(balances).toEqual([1_000_000_000_000n, 0n])
  })

  test('a fresh devnet (local test chain) has a funded gas wallet without any sent transaction', async () => {
    const address = gasWallet.address
    expect(await client.getBalance({ address })).toBe(10n ** 22n)
    expect(await client.getTransactionCount({ address })).toBe(0)
  })

  test('a fresh devnet (local test chain) settles a signed payment, and settles the payment only once', async () => {
    const authorization = authorize()
    const signature = await signed(authorization)
    const verdict = await judge(authorization, signature)
    if (verdict.kind !== 'valid') throw new Error(verdict.kind)
    const receipt = await settle(devnet, authorization, verdict.signature)
    expect(receipt.status).toBe('success')
    const [transfer] = parseEventLogs({ abi: ABI, eventName: 'Transfer', logs: receipt.logs })
    expect(transfer?.args).toEqual({ from: payer.address, to: payTo, value: 10_000n })
    expect(await client.readContract({ ...usdc, functionName: 'balanceOf', args: [payTo] })).toBe(
      10_000n,
    )
    expect(await chainAccepts(client, authorization, signature)).toBe(false)
    expect((await settle(devnet, authorization, signature)).status).toBe('reverted')
  })

  test('a fresh devnet accepts a payment from an ERC-1271 contract wallet, although only the wallet contract can check the signature', async () => {
    const from = await deployWallet(client, payer.address)
    await fund(client, from)
    const authorization = authorize({ from })
    const signature = await signed(authorization)
    expect(await judge(authorization, signature)).toMatchObject({ kind: 'contract', signature })
    expect(await chainAccepts(client, authorization, signature)).toBe(true)
  })

  test('a devnet accepts every signature and payment that the service accepts, unless the payer has too little money, which the service does not check', async () => {
    const nowS = BigInt(Math.floor(Date.now() / 1000))
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
    const highS = (signature: Hex): Hex => {
      const s = order - BigInt(`0x${signature.slice(66, 130)}`)
      const v = signature.endsWith('1b') ? '1c' : '1b'
      return `0x${signature.slice(2, 66)}${s.toString(16).padStart(64, '0')}${v}`
    }
    const v0 = (signature: Hex): Hex =>
      `${signature.slice(0, -2)}${signature.endsWith('1b') ? '00' : '01'}` as Hex
    const keep = (signature: Hex) => signature
    const wrapped = (signature: Hex): Hex => `${signature}${'6492'.repeat(16)}`
    const cheaper = await signed(authorize({ value: 1n }))
    const wrongExtra = { name: 'USD Coin', version: '2' }
    const wrongName = { ...SEPOLIA, eip712Name: 'USD Coin' }
    const onBase = { ...SEPOLIA, chainId: 8453 }
    type Row = [
      name: string,
      changes: Partial<Authorization>,
      respell: (signature: Hex) => Hex,
      domain: UsdcNetwork,
      required: Parameters<typeof judge>[2],
      ours: string,
      chain: boolean,
    ]
    const value = 'invalid_exact_evm_payload_authorization_value'
    const before = 'invalid_exact_evm_payload_authorization_valid_before'
    const after = 'invalid_exact_evm_payload_authorization_valid_after'
    const bad = 'contract: invalid_exact_evm_payload_signature'
    const long = 'contract: invalid_exact_evm_payload_undeployed_smart_wallet'
    const recipient = 'invalid_exact_evm_payload_recipient_mismatch'
    const self = { to: payer.address }
    const rows: Row[] = [
      ['ok', {}, keep, SEPOLIA, {}, 'valid', true],
      ['value over', { value: 10_001n }, keep, SEPOLIA, {}, value, true],
      ['value under', { value: 9_999n }, keep, SEPOLIA, {}, value, true],
      ['wrong payTo', { to: gasWallet.address }, keep, SEPOLIA, {}, recipient, true],
      ['expired', { validBefore: nowS - 1n }, keep, SEPOLIA, {}, before, false],
      ['expires in 5 s', { validBefore: nowS + 5n }, keep, SEPOLIA, {}, before, true],
      ['not yet valid', { validAfter: nowS + 60n }, keep, SEPOLIA, {}, after, false],
      ['wrong name', {}, keep, wrongName, {}, bad, false],
      ['wrong chain', {}, keep, onBase, {}, bad, false],
      ['other network', {}, keep, SEPOLIA, { network: 'base' }, 'invalid_network', true],
      ['scheme upto', {}, keep, SEPOLIA, { scheme: 'upto' }, 'unsupported_scheme', true],
      ['tampered value', {}, () => cheaper, SEPOLIA, {}, bad, false],
      ['wrong name on both sides', {}, keep, wrongName, { extra: wrongExtra }, bad, false],
      ['ERC-6492 garbage', {}, wrapped, SEPOLIA, {}, bad.slice(10), false],
      ['high s', {}, highS, SEPOLIA, {}, bad, false],
      // The test asks the chain about the normalised signature, because the service also broadcasts the signature in
      // this form.
      ['v 0 or 1', {}, v0, SEPOLIA, {}, 'valid', true],
      ['zero signature', {}, () => `0x${'00'.repeat(65)}`, SEPOLIA, {}, bad, false],
      ['short signature', {}, () => '0x1234', SEPOLIA, {}, bad.slice(10), false],
      ['two signatures', {}, (s) => `0x${s.slice(2).repeat(2)}`, SEPOLIA, {}, long, false],
      ['self-payment', self, keep, SEPOLIA, { payTo: payer.address }, 'invalid_payment', true],
      ['zero amount', { value: 0n }, keep, SEPOLIA, { maxAmountRequired: '0' }, value, true],
      // A payment with an amount of 18 digits passes all checks of the service, because only the chain knows that the
      // payer’s balance is too low.
      [
        'no funds',
        { value: 10n ** 17n },
        keep,
        SEPOLIA,
        { maxAmountRequired: '100000000000000000' },
        'valid',
        false,
      ],
    ]
    for (const [name, changes, respell, domain, required, ours, chain] of rows) {
      const authorization = authorize(changes)
      const signature = respell(await signed(authorization, domain))
      const verdict = await judge(authorization, signature, required)
      const said =
        verdict.kind === 'valid'
          ? 'valid'
          : verdict.kind === 'invalid'
            ? verdict.reason
            : `contract: ${verdict.reasonWithoutCode}`
      expect([name, said]).toEqual([name, ours])
      const sent = verdict.kind === 'valid' ? verdict.signature : signature
      expect([name, await chainAccepts(client, authorization, sent)]).toEqual([name, chain])
    }
  })

  test('the token owner can blacklist an address on a fresh devnet, as Circle can on the real chain', async () => {
    const account = DEVNET_ACCOUNTS.tokenOwner.address
    const snapshot = await client.snapshot()
    const data = encodeFunctionData({
      abi: ABI,
      functionName: 'blacklist',
      args: [payer.address],
    })
    const hash = await client.sendTransaction({ account, chain: null, to: usdc.address, data })
    await client.waitForTransactionReceipt({ hash })
    const authorization = authorize()
    expect(await chainAccepts(client, authorization, await signed(authorization))).toBe(false)
    await client.revert({ id: snapshot })
  })
})
