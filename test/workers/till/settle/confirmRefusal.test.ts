/** Tests that a refused simulation makes a payment fail only if the highest known block confirms the refusal. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { confirmRefusal } from '../../../../workers/till/settle/verdict.ts'
import { simulate } from '../../../../workers/till/trial/trialCalls.ts'
import { type HandTill, startHandTill } from '../../../support/till/handTill.ts'
import { deployWallet, FACTORY } from '../../../support/till/smartWallet.ts'
import { fund, newPayer, pay, payer } from '../../../support/till/till.ts'

let till: HandTill
beforeAll(async () => {
  till = await startHandTill()
})
afterEach(() => till.proxy.errors.clear())
afterAll(() => till[Symbol.asyncDispose]())

describe('a refusal of a payment by the chain is final only if the newest block confirms it', () => {
  const refusal = {
    kind: 'final',
    reason: 'insufficient_funds',
    detail: 'ERC20: transfer amount exceeds balance',
  } as const
  const confirm = async (id: string) => confirmRefusal(till.chain, await till.payment(id), refusal)
  const poor = async () => pay({}, { account: await newPayer(till.client, 1n) })

  test('a refusal of a payment is confirmed only if the chain refuses the payment for the same reason at the highest known block', async () => {
    const id = await till.claim(await poor())
    expect(await confirm(id)).toBe(true)
    const other = 'execution reverted: Pausable: paused'
    till.proxy.errors.set('eth_call', () => ({ code: 3, message: other }))
    expect(await confirm(id)).toBe(false)
    till.proxy.errors.set('eth_call', () => ({ code: -32000, message: 'header not found' }))
    expect(await confirm(id)).toBe(false)
    till.proxy.errors.clear()
    expect(await confirm(await till.claim(await pay()))).toBe(false)
  })

  test('the refusal of a payment counts as confirmed if the authorization is not yet valid at the highest known block', async () => {
    const { timestamp } = await till.client.getBlock()
    const early = await pay({ validAfter: timestamp + 1_000n, validBefore: timestamp + 2_000n })
    expect(await confirm(await till.claim(early))).toBe(true)
  })

  test('if the payer’s wallet already has code, the refusal of a simulation that deploys the wallet is never confirmed', async () => {
    const from = await deployWallet(till.client, payer.address)
    const deployment = { factory: FACTORY, factoryData: '0x' } as const
    await fund(till.client, from, 10_000n)
    const payment = await till.payment(await till.claim(await pay({ from }), { deployment }))

    const options = { from: till.chain.accounts[0]!.address, fees: null, block: 'latest' } as const
    const [answer] = await simulate(till.chain.rpc, [payment], options)
    if (answer?.kind !== 'refused') throw new Error('the second deployment burns all gas')
    expect(await confirmRefusal(till.chain, payment, answer.refusal)).toBe(false)
    const paid = { ...payment, deployment: null }
    expect(await simulate(till.chain.rpc, [paid], options)).toEqual([{ kind: 'passes' }])
  })
})
