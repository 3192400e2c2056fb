/**
 * Tests the check that simulates a payment on the chain before the service claims the payment (stores it).
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Address } from 'viem'
import { newCheckId } from '../../../../shared/ids.ts'
import { createCheck, findCheck, refuseCheck } from '../../../../sql/till/payments/paymentChecks.ts'
import { CHECK_LIMITS, Lanes, type Turn } from '../../../../workers/queue/lanes.ts'
import { settlePayments } from '../../../../workers/till/settle/settler.ts'
import type { Till } from '../../../../workers/till/till.ts'
import { createCheckPayment } from '../../../../workers/till/trial/checkPayment.ts'
import { type HandTill, startHandTill } from '../../../support/till/handTill.ts'
import { deployWallet, FACTORY, futureWallet } from '../../../support/till/smartWallet.ts'
import { fund, pay, payer } from '../../../support/till/till.ts'
import { dropJobs, newClaim } from '../../../support/till/tillRows.ts'
import { broadcastPayment } from '../../../support/till/tokenCalls.ts'

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
async function run(checkId: string, { turn }: { turn?: Turn } = {}): Promise<any> {
  const free = new Lanes(32, CHECK_LIMITS)
  const lanes = turn === undefined ? free : { enter: async () => turn }
  const run = createCheckPayment({ lanes } as never, { view: till.chain } as Till)
  await run({ checkId }, { attempt: 1 })
  return findCheck(till.pool, checkId)
}
/** Makes a payment check look older. */
const age = (checkId: string, ms: number) =>
  till.pool.query(
    `update payment_checks set created_at = clock_timestamp() - make_interval(secs => $2) where id = $1`,
    [checkId, ms / 1000],
  )
/** Returns the payload of the queued job of a payment check, and the number of milliseconds until this job runs. */
async function nextRun(checkId: string): Promise<{ payload: any; inMs: number }> {
  const { rows } = await till.pool.query(
    `select payload, extract(epoch from run_at - created_at)::float8 * 1000 as in_ms
     from graphile_worker._private_jobs where key = $1`,
    [`check_payment:${checkId}`],
  )
  return { payload: rows[0].payload, inMs: rows[0].in_ms }
}
const isQueued = async (checkId: string) => {
  const { rows } = await till.pool.query('select key from graphile_worker.jobs where key like $1', [
    'check_payment:%',
  ])
  return rows.map(({ key }) => key).includes(`check_payment:${checkId}`)
}

describe('the service simulates a payment on the chain, and refuses it if the simulation fails', () => {
  test('a payment check passes without a deployment if the payer’s wallet is already deployed and accepts the signature', async () => {
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

  test('a payment check passes if the payer’s wallet was deployed after this process last read the newest block', async () => {
    const fresh = await deployWallet(till.client, payer.address)
    await fund(till.client, fresh, 10_000n)
    expect(await run(await newCheck(await pay({ from: fresh })))).toMatchObject({ state: 'passed' })
  })

  test('a payment check is refused if the payer’s wallet does not exist, unless an allowed factory deploys the wallet', async () => {
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

  test('a payment check is refused if the authorization is used, expired or forged', async () => {
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

  test('while the state of the chain is unknown or the chain node is at fault, a payment check is tried again', async () => {
    const id = await newCheck(await pay({ from: wallet }))
    const { network } = till.chain
    Object.assign(till.chain, { network: null })
    expect(await run(id)).toMatchObject({ state: 'open' })
    expect(await isQueued(id)).toBe(true)
    Object.assign(till.chain, { network })
    await dropJobs(till.pool)
    for (const message of ['header not found', 'execution reverted: Pausable: paused']) {
      // A chain node that lags behind does not have the highest known block, so the payment is simulated at the newest
      // block of the node.
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

  test('a payment check that has ended is not tried again', async () => {
    const id = await newCheck(await pay({ from: wallet }))
    await refuseCheck(till.pool, id, 'unexpected_verify_error')
    till.proxy.fault = { status: 503 }
    await run(id)
    expect(await isQueued(id)).toBe(false)
  })

  test('a payment check simulates the payment on the pending block if the authorization is not yet valid in the newest block', async () => {
    const { timestamp } = await till.client.getBlock()
    const soon = await pay({ from: wallet, validAfter: timestamp, validBefore: timestamp + 600n })
    await till.client.increaseTime({ seconds: 10 })
    expect(await run(await newCheck(soon))).toMatchObject({ state: 'passed' })
  })

  test('if the chain does not decide a payment check, the check is repeated at growing intervals', async () => {
    const id = await newCheck(await pay({ from: wallet }))
    till.proxy.fault = { status: 503 }
    for (const [ageMs, leastMs, mostMs] of [
      [0, 250, 500],
      [900, 250, 1_000],
      [4_000, 1_500, 3_000],
      [8_000, 3_000, 4_000],
      [100_000, 3_000, 4_000],
    ] as const) {
      await age(id, ageMs)
      expect(await run(id)).toMatchObject({ state: 'open' })
      const { payload, inMs } = await nextRun(id)
      // A worker of the previous release fails if the payload of a payment check's job has any field other than
      // `checkId`.
      expect(payload).toEqual({ checkId: id })
      expect(inMs).toBeWithin(leastMs, mostMs + 1)
      await dropJobs(till.pool)
    }
  })

  test('if nobody waits for a payment check any more, the check is refused without a request to the chain', async () => {
    const id = await newCheck(await pay({ from: wallet }))
    await age(id, 121_000)
    expect(await run(id)).toMatchObject({ state: 'refused', reason: 'unexpected_verify_error' })
    expect(await isQueued(id)).toBe(false)
  })

  test('a payment check of a project without a free job slot is queued again for later, without a request to the chain', async () => {
    const id = await newCheck(await pay({ from: wallet }))
    const turn: Turn = { granted: false, returnInMs: 60_000 }
    expect(await run(id, { turn })).toMatchObject({ state: 'open' })
    const { payload, inMs } = await nextRun(id)
    expect(payload).toEqual({ checkId: id })
    expect(inMs).toBeWithin(30_000, 60_001)
    await dropJobs(till.pool)
    let left = 0
    const leave = () => void left++
    await run(id, { turn: { granted: true, waited: false, leave } })
    expect(left).toBe(1)
  })
})
