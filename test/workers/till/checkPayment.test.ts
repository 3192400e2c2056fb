/** What the chain alone can judge: a wallet's signature, before anything is claimed. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Address } from 'viem'
import { newCheckId } from '../../../shared/ids.ts'
import { createCheck, findCheck, refuseCheck } from '../../../sql/till/paymentChecks.ts'
import { createCheckPayment } from '../../../workers/till/checkPayment.ts'
import { settlePayments } from '../../../workers/till/settler.ts'
import type { Till } from '../../../workers/till/till.ts'
import { type HandTill, startHandTill } from '../../support/handTill.ts'
import { deployWallet, FACTORY, futureWallet } from '../../support/smartWallet.ts'
import { fund, pay, payer } from '../../support/till.ts'
import { dropJobs, newClaim } from '../../support/tillRows.ts'
import { broadcastPayment } from '../../support/tokenCalls.ts'

let till: HandTill
let wallet: Address
beforeAll(async () => {
  till = await startHandTill()
  wallet = await deployWallet(till.client, payer.address)
  await fund(till.client, wallet, 1_000_000n)
})
beforeEach(() => till.reset())
afterAll(() => till[Symbol.asyncDispose]())

type Payment = Awaited<ReturnType<typeof pay>>
const WITHOUT_CODE = 'eip6492_factory_not_allowed'
async function newCheck(
  { authorization: a, signature }: Payment,
  deployment: { factory: Address; factoryData: `0x${string}` } | null = null,
): Promise<string> {
  const id = newCheckId()
  const claim = newClaim(till.projectId, {
    payer: a.from,
    recipient: a.to,
    amountAtomic: a.value,
    validAfter: a.validAfter,
    validBefore: a.validBefore,
    nonce: a.nonce,
    signature,
    deployment,
  })
  await createCheck(till.pool, { id, claim, claims: true, reasonWithoutCode: WITHOUT_CODE })
  await dropJobs(till.pool)
  return id
}
async function run(checkId: string): Promise<any> {
  const run = createCheckPayment({ view: till.chain } as Till)
  await run({ checkId }, { attempt: 1 })
  return findCheck(till.pool, checkId)
}
const isQueued = async (checkId: string) => {
  const { rows } = await till.pool.query('select key from graphile_worker.jobs where key like $1', [
    'check_payment:%',
  ])
  return rows.map(({ key }) => key).includes(`check_payment:${checkId}`)
}

describe('a check', () => {
  test('passes where the wallet takes the signature, with no deployment of a wallet that is there', async () => {
    const id = await newCheck(await pay({ from: wallet }), {
      factory: FACTORY,
      factoryData: '0x1234',
    })
    const { state, paymentId } = await run(id)
    expect(state).toBe('passed')
    expect((await till.payment(paymentId)).deployment).toBeNull()
    await settlePayments(till.chain, [paymentId])
    expect((await till.payment(paymentId)).txHash).not.toBeNull()
  })

  test('passes for a wallet that was deployed since the last look at the chain', async () => {
    const fresh = await deployWallet(till.client, payer.address)
    await fund(till.client, fresh, 10_000n)
    expect(await run(await newCheck(await pay({ from: fresh })))).toMatchObject({ state: 'passed' })
  })

  test('is refused where there is no wallet, unless an allowed factory deploys it', async () => {
    const future = futureWallet(payer.address)
    await fund(till.client, future.address, 10_000n)
    const payment = await pay({ from: future.address })
    const nobody = { ...future.deployment, factory: wallet }
    expect(await run(await newCheck(payment))).toMatchObject({ reason: WITHOUT_CODE })
    expect(await run(await newCheck(payment, nobody))).toMatchObject({ reason: WITHOUT_CODE })
    till.chain.factories = new Set([FACTORY.toLowerCase()])
    expect(await run(await newCheck(payment, future.deployment))).toMatchObject({ state: 'passed' })
    till.chain.factories = new Set()
    expect(await run(await newCheck(payment, future.deployment))).toMatchObject({
      reason: WITHOUT_CODE,
    })
  })

  test('is refused where the token refuses it: used, expired, or signed by another', async () => {
    const used = await pay({ from: wallet })
    const broadcast = await broadcastPayment(till.client, used)
    await till.client.waitForTransactionReceipt({ hash: broadcast })
    const { timestamp } = await till.client.getBlock()
    const expired = await pay({ from: wallet, validBefore: timestamp - 1n })
    const forged = { ...(await pay({ from: wallet })), signature: `0x${'ab'.repeat(65)}` } as const
    for (const [payment, reason] of [
      [used, 'invalid_exact_evm_nonce_already_used'],
      [expired, 'invalid_exact_evm_payload_authorization_valid_before'],
      [forged, 'invalid_exact_evm_payload_signature'],
    ] as const) {
      expect(await run(await newCheck(payment))).toMatchObject({ state: 'refused', reason })
    }
  })

  test('is tried again while the chain is not known or the node has trouble', async () => {
    const id = await newCheck(await pay({ from: wallet }))
    const { network } = till.chain
    Object.assign(till.chain, { network: null })
    expect(await run(id)).toMatchObject({ state: 'open' })
    expect(await isQueued(id)).toBe(true)
    Object.assign(till.chain, { network })
    await dropJobs(till.pool)
    for (const message of ['header not found', 'execution reverted: Pausable: paused']) {
      // The newest block is judged by a node that lags behind; the highest block seen is not there.
      till.proxy.errors.set('eth_call', ([, at]) =>
        at === 'latest'
          ? { code: message === 'header not found' ? -32000 : 3, message }
          : { code: -32000, message: 'header not found' },
      )
      expect(await run(id)).toMatchObject({ state: 'open' })
      expect(await isQueued(id)).toBe(true)
      await dropJobs(till.pool)
    }
    till.proxy.errors.clear()
    expect(await run(id)).toMatchObject({ state: 'passed' })
  })

  test('that is over is not tried again', async () => {
    const id = await newCheck(await pay({ from: wallet }))
    await refuseCheck(till.pool, id, 'unexpected_verify_error')
    till.proxy.fault = { status: 503 }
    await run(id)
    expect(await isQueued(id)).toBe(false)
  })

  test('of an authorization that the newest block is too early for is judged by the next', async () => {
    const { timestamp } = await till.client.getBlock()
    const soon = await pay({ from: wallet, validAfter: timestamp, validBefore: timestamp + 600n })
    await till.client.increaseTime({ seconds: 10 })
    expect(await run(await newCheck(soon))).toMatchObject({ state: 'passed' })
  })
})
