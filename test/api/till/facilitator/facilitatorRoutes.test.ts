/**
 * Tests the responses of the facilitator routes without a chain. The test itself records each result that a worker
 * would record.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { findCheck, passCheck, refuseCheck } from '../../../../sql/till/payments/paymentChecks.ts'
import type { NewClaim } from '../../../../sql/till/settle/claims.ts'
import { failPayment } from '../../../../sql/till/settle/settlements.ts'
import { recordHead } from '../../../../sql/till/watch/chainStatus.ts'
import { changeProject } from '../../../support/changeProject.ts'
import { whileFailing } from '../../../support/database/failingStatements.ts'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'
import { NETWORK, payloadV2, requirementV2 } from '../../../support/till/headers/x402v2.ts'
import {
  pay,
  payer,
  payTo,
  RESOURCE,
  redeem,
  registerEndpoint,
  SEPOLIA,
  type SignedPayment,
} from '../../../support/till/till.ts'
import {
  newHash,
  newPayment,
  newTransaction,
  settle,
  whileHeld,
} from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let service: TestService
let pool: TestService['database']['pool']
let seller: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  pool = service.database.pool
  await knowChain()
})
beforeEach(async () => {
  seller = await service.newAgent()
  await changeProject(pool, seller.project.id, { payTo, paymentsEnabled: true })
})
afterAll(() => service[Symbol.asyncDispose]())

const knowChain = () =>
  recordHead(pool, { network: 'base-sepolia', chainId: 84532, number: 7n, hash: '0x7' })

type Json = Record<string, unknown>
const V1 = {
  ...{ scheme: 'exact', network: 'base-sepolia', maxAmountRequired: '10000', resource: RESOURCE },
  ...{ description: '', mimeType: '', payTo, maxTimeoutSeconds: 60, asset: SEPOLIA.usdcAddress },
}
const decoded = ({ header }: SignedPayment) =>
  JSON.parse(Buffer.from(header, 'base64').toString()) as Json
const faceV1 = (payment: SignedPayment, changes: Json = {}) => ({
  paymentPayload: decoded(payment),
  paymentRequirements: { ...V1, ...changes },
})
const faceV2 = (payment: SignedPayment, changes: Json = {}) => ({
  paymentPayload: payloadV2(payment),
  paymentRequirements: requirementV2(changes),
})
const ask = async (path: 'verify' | 'settle', body: unknown) => {
  const { status, body: answer } = await seller.post(`/v0/x402/${path}`, body)
  expect(status).toBe(200)
  return answer
}

/** Waits until a payment has a row in the given table, and returns the id of the row. */
const rowOf = ({ authorization: { nonce } }: SignedPayment, table: 'payments' | 'payment_checks') =>
  waitFor(`a row of ${table}`, async () => {
    const column = table === 'payments' ? 'authorization_nonce' : `claim->>'authorization_nonce'`
    const { rows } = await pool.query(`select id from ${table} where ${column} = $1`, [nonce])
    return rows[0]?.id as string | undefined
  })
/** Verifies a payment, and ends the payment's check as a worker would. */
async function verified(payment: SignedPayment, end: (checkId: string) => Promise<unknown>) {
  const answer = ask('verify', faceV1(payment))
  await end(await rowOf(payment, 'payment_checks'))
  return answer
}
/** Settles a payment, and ends the stored payment as a worker would. */
async function settled(
  payment: SignedPayment,
  body: unknown,
  end: (paymentId: string) => Promise<unknown>,
) {
  const answer = ask('settle', body)
  const paymentId = await rowOf(payment, 'payments')
  await end(paymentId)
  return { paymentId, answer: await answer }
}
const pass = async (id: string) => passCheck(pool, (await findCheck(pool, id))!)

describe('the facilitator’s verify call tells the seller whether a payment is valid, and spends nothing', () => {
  test('if a worker finds no fault in a payment, the verify call calls the payment valid and does not claim (reserve) it', async () => {
    const payment = await pay()
    expect(await verified(payment, pass)).toEqual({ isValid: true, payer: payer.address })
    const { rowCount } = await pool.query('select from payments where authorization_nonce = $1', [
      payment.authorization.nonce,
    ])
    expect(rowCount).toBe(0)
  })

  test('if a worker finds a fault in a payment, the verify call calls the payment invalid and gives the worker’s reason', async () => {
    const refused = await verified(await pay(), (id) => refuseCheck(pool, id, 'insufficient_funds'))
    expect(refused).toMatchObject({
      ...{ isValid: false, invalidReason: 'insufficient_funds', payer: payer.address },
      invalidMessage: expect.any(String),
    })
  })

  test('if a fault is visible in the payment or its requirements, the payment is invalid, and the service does not ask the chain', async () => {
    const cases: [body: unknown, reason: string, payer: boolean][] = [
      [faceV1(await pay(), { payTo: payer.address }), 'invalid_payment_requirements', true],
      [faceV1(await pay({ value: 9_999n })), 'invalid_exact_evm_payload_authorization_value', true],
      [{ ...faceV1(await pay()), paymentPayload: { x402Version: 1 } }, 'invalid_payload', false],
      [{}, 'invalid_payment_requirements', false],
    ]
    const counted = 'select count(*)::int as n from payment_checks'
    const before = (await pool.query(counted)).rows[0].n
    for (const [body, invalidReason, isRead] of cases) {
      const answer = await ask('verify', body)
      expect(answer).toMatchObject({ isValid: false, invalidMessage: expect.any(String) })
      expect([answer.invalidReason, answer.payer]).toEqual([
        invalidReason,
        isRead ? payer.address : undefined,
      ])
    }
    expect((await pool.query(counted)).rows[0].n).toBe(before)
  })

  test('the verify call refuses a payment that the chain accepts, if the settle call would refuse the payment as already used', async () => {
    const claimed = async (changes: Partial<NewClaim>) => {
      const payment = await pay()
      const { from, to, nonce } = payment.authorization
      const sale = { projectId: seller.project.id, resourceUrl: RESOURCE }
      const id = await newPayment(pool, { ...sale, payer: from, recipient: to, nonce, ...changes })
      return { payment, id }
    }
    const reasonOf = async (payment: SignedPayment) =>
      (await verified(payment, pass)).invalidReason ?? 'valid'
    const open = await claimed({})
    expect(await reasonOf(open.payment)).toBe('valid')
    const elsewhere = await claimed({ resourceUrl: 'https://api.example.com/other' })
    expect(await reasonOf(elsewhere.payment)).toBe('duplicate_settlement')
    const granted = await claimed({})
    await pool.query('update payments set granted_at = clock_timestamp() where id = $1', [
      granted.id,
    ])
    expect(await reasonOf(granted.payment)).toBe('duplicate_settlement')
    const failed = await claimed({})
    const failure = { stage: 'verify', reason: 'insufficient_funds', detail: null } as const
    await failPayment(pool, { paymentId: failed.id, ...failure })
    expect(await reasonOf(failed.payment)).toBe('insufficient_funds')
  })

  test('a payment above the project’s daily limit is invalid', async () => {
    await pool.query('insert into project_limits (project_id, daily_settlements) values ($1, 0)', [
      seller.project.id,
    ])
    const { invalidReason } = await ask('verify', faceV1(await pay()))
    expect(invalidReason).toBe('settlement_limit_reached')
    const { errorReason } = await ask('settle', faceV1(await pay()))
    expect(errorReason).toBe('settlement_limit_reached')
  })
})

describe('the facilitator’s settle call transfers the money of a payment once', () => {
  test('the settlement of a payment succeeds only once, and the response spells the network as in the payment’s x402 version', async () => {
    for (const [face, network] of [
      [faceV1, 'base-sepolia'],
      [faceV2, NETWORK],
    ] as const) {
      const payment = await pay()
      let hash = ''
      const { paymentId, answer } = await settled(payment, face(payment), async (id) => {
        hash = (await newTransaction(pool, id)).hash
        await settle(pool, id, hash as `0x${string}`)
      })
      const told = { transaction: hash, network, payer: payer.address, paymentId }
      expect(answer).toMatchObject({ success: true, ...told })
      expect(await ask('settle', face(payment))).toMatchObject({
        ...{ success: false, errorReason: 'duplicate_settlement', ...told },
        errorMessage: expect.any(String),
      })
    }
  })

  test('if a reorganisation undoes a settlement before the seller gets the response, the payment counts as pending, and not as a duplicate', async () => {
    const env = { SETTLEMENT_WAIT_MS: '1' }
    await using hasty = await startTestService({ smtp: false, workers: false, env })
    const mine = hasty.database.pool
    await recordHead(mine, { network: 'base-sepolia', chainId: 84532, number: 7n, hash: '0x7' })
    const agent = await hasty.newAgent()
    await changeProject(mine, agent.project.id, { payTo, paymentsEnabled: true })
    await registerEndpoint(mine, { projectId: agent.project.id, resource: RESOURCE })
    const calls = {
      settle: (payment: SignedPayment) => agent.post('/v0/x402/settle', faceV1(payment)),
      redeem: (payment: SignedPayment) => redeem(agent, payment.header),
    }
    for (const call of Object.values(calls)) {
      const payment = await pay()
      await call(payment)
      const { rows } = await mine.query('select id from payments where authorization_nonce = $1', [
        payment.authorization.nonce,
      ])
      const { id } = rows[0]
      await settle(mine, id, (await newTransaction(mine, id)).hash)
      const undo = `update payments set state = 'verified' where id = $1`
      const [answer] = await whileHeld(mine, undo, [id], () => [call(payment)])
      const { errorReason, reason } = answer!.body as Json
      expect(errorReason ?? reason).toBe('settlement_pending')
    }
  })

  test('a failed payment is refused with its reason and its id', async () => {
    const payment = await pay()
    const failure = { stage: 'settle', reason: 'insufficient_funds', detail: 'poor' } as const
    const { paymentId, answer } = await settled(payment, faceV1(payment), (id) =>
      failPayment(pool, { paymentId: id, ...failure }),
    )
    expect(answer).toMatchObject({
      ...{ success: false, errorReason: 'insufficient_funds', transaction: '', paymentId },
      ...{ network: 'base-sepolia', payer: payer.address },
    })
  })

  test('a payment with a fault is refused, and the service does not store it', async () => {
    const poor = await pay({ value: 9_999n })
    const malformed = { ...faceV2(await pay()), paymentPayload: { x402Version: 2, payload: 7 } }
    for (const [body, network] of [
      [faceV1(poor), 'base-sepolia'],
      [faceV2(poor), NETWORK],
      [faceV1(await pay(), { scheme: 'upto' }), 'base-sepolia'],
      [malformed, NETWORK],
    ] as const) {
      const answer = await ask('settle', body)
      expect(answer).toMatchObject({ success: false, transaction: '', network })
      expect(answer).not.toContainKey('paymentId')
    }
  })
})

describe('if the seller changes its settings after a settlement, the settle call still succeeds only for the terms that were paid', () => {
  const OTHER = `0x${'aa'.repeat(20)}`
  /** Makes a payment that is settled on the chain, but that the facilitator has not yet confirmed to the seller. */
  async function unfinished() {
    const payment = await pay()
    const { authorization: a, signature } = payment
    const id = await newPayment(pool, {
      ...{ projectId: seller.project.id, resourceUrl: RESOURCE, endpointId: null, matchKey: null },
      ...{ payer: a.from, recipient: a.to, amountAtomic: a.value, nonce: a.nonce, signature },
      ...{ validAfter: a.validAfter, validBefore: a.validBefore },
    })
    const { hash } = await newTransaction(pool, id)
    await settle(pool, id, hash)
    return { payment, told: { paymentId: id, transaction: hash, network: 'base-sepolia' } }
  }

  for (const [change, fields] of [
    ['a new payTo', { payTo: OTHER }],
    ['disabled payments', { paymentsEnabled: false }],
  ] as const) {
    test(`after ${change}, the seller’s middleware repeats the old requirements, and the settle call confirms the settled payment once`, async () => {
      const { payment, told } = await unfinished()
      await changeProject(pool, seller.project.id, fields)
      expect(await ask('verify', faceV1(payment))).toMatchObject({ isValid: true })
      expect(await ask('settle', faceV1(payment))).toMatchObject({ success: true, ...told })
      expect(await ask('settle', faceV1(payment))).toMatchObject({ success: false })
    })
  }

  test('the settle call refuses requirements whose payTo address or amount differs from the payment', async () => {
    const { payment } = await unfinished()
    await changeProject(pool, seller.project.id, { payTo: OTHER })
    for (const changes of [{ payTo: `0x${'bb'.repeat(20)}` }, { maxAmountRequired: '10001' }]) {
      expect(await ask('settle', faceV1(payment, changes))).toMatchObject({
        ...{ success: false, errorReason: 'invalid_payment_requirements', transaction: '' },
      })
    }
  })
})

describe('a project with disabled payments, or whose chain no payment worker has reported, cannot sell over the facilitator', () => {
  test('if a project has not enabled payments, the facilitator answers with status 200 and the reason', async () => {
    await changeProject(pool, seller.project.id, { paymentsEnabled: false })
    const message = 'Payments are not enabled for this project'
    expect(await ask('verify', faceV1(await pay()))).toEqual({
      ...{ isValid: false, invalidReason: 'invalid_payment_requirements', invalidMessage: message },
      payer: payer.address,
    })
    expect(await ask('settle', faceV1(await pay()))).toEqual({
      ...{ success: false, errorReason: 'invalid_payment_requirements', errorMessage: message },
      ...{ transaction: '', network: '', payer: payer.address },
    })
  })

  test('while the database is unreachable, the facilitator answers with status 503 and calls no payment invalid', async () => {
    const good = faceV1(await pay())
    for (const body of [good, { ...good, paymentPayload: { x402Version: 1 } }]) {
      const answer = await whileFailing('select p.pay_to', () =>
        seller.post('/v0/x402/verify', body),
      )
      expect(answer).toMatchObject({ status: 503, body: { error: 'unavailable' } })
    }
  })

  test('until a payment worker has reported its chain, the facilitator answers a payment with an unexpected error', async () => {
    await pool.query('delete from chain_status')
    const answer = await ask('verify', faceV1(await pay()))
    expect(answer).toMatchObject({
      invalidReason: 'unexpected_verify_error',
      invalidMessage: 'No payment worker has connected to the chain yet',
    })
    await knowChain()
  })
})

/** Starts a service with a seller. The service waits only `waitMs` (300 ms by default) for a settlement. */
async function startHasty(waitMs = 300): Promise<TestService> {
  const env = { SETTLEMENT_WAIT_MS: String(waitMs) }
  const hasty = await startTestService({ smtp: false, workers: false, env })
  pool = hasty.database.pool
  await knowChain()
  seller = await hasty.newAgent()
  await changeProject(pool, seller.project.id, { payTo, paymentsEnabled: true })
  return hasty
}

test('the settle call refuses a payment that is still pending, and gives the hash of its transaction', async () => {
  await using _ = await startHasty()
  const payment = await pay()
  let hash = ''
  const { paymentId, answer } = await settled(payment, faceV1(payment), async (id) => {
    hash = (await newTransaction(pool, id)).hash
  })
  pool = service.database.pool
  expect(answer).toMatchObject({
    ...{ success: false, errorReason: 'settlement_pending', transaction: hash, paymentId },
  })
})

test('if a payment ends while the facilitator waits for the transaction’s hash, the response contains the payment’s outcome', async () => {
  await using _ = await startHasty(1)
  const [poor, rich] = [await pay(), await pay()]
  const failure = { stage: 'verify', reason: 'insufficient_funds', detail: 'poor' } as const
  const failed = await settled(poor, faceV1(poor), (id) =>
    failPayment(pool, { paymentId: id, ...failure }),
  )
  const made = await settled(rich, faceV1(rich), (id) =>
    settle(pool, id, newHash(), { receiptText: '{"jws":"a.b.c"}' }),
  )
  pool = service.database.pool
  const { paymentId } = failed
  expect(failed.answer).toMatchObject({ errorReason: 'insufficient_funds', paymentId })
  expect(made.answer).toMatchObject({ success: true, paymentId: made.paymentId })
})

test('a claimed (stored) payment stays valid until the seller gets the response, even if it has settled or the daily limit is used up', async () => {
  await using _ = await startHasty()
  await pool.query('insert into project_limits (project_id, daily_settlements) values ($1, 1)', [
    seller.project.id,
  ])
  const payment = await pay()
  const face = faceV2(payment)
  let hash = ''
  const { paymentId, answer } = await settled(payment, face, async (id) => {
    hash = (await newTransaction(pool, id)).hash
  })
  expect(answer.errorReason).toBe('settlement_pending')
  const valid = { isValid: true, payer: payer.address }
  expect(await ask('verify', face)).toEqual(valid)
  await settle(pool, paymentId, hash as `0x${string}`)
  expect(await ask('verify', face)).toEqual(valid)
  const dearer = { ...face, paymentRequirements: requirementV2({ amount: '20000' }) }
  expect((await ask('verify', dearer)).isValid).toBe(false)
  expect(await ask('settle', face)).toMatchObject({ success: true, paymentId })
  expect((await ask('verify', face)).isValid).toBe(false)
  pool = service.database.pool
})
